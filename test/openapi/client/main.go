// Command client runs a cell, follows it and reads its result, with the client that
// oapi-codegen makes of the HTTP API's document. It is a module of its own; make
// test-openapi generates package api beside it, in a copy.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"example.org/client/api"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: client URL TOKEN")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := run(ctx, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "bad the client of oapi-codegen:", err)
		os.Exit(1)
	}
	fmt.Println("ok  the client of oapi-codegen runs a cell, follows it and reads its result")
}

func run(ctx context.Context, url, token string) error {
	auth := api.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+token)
		return nil
	})
	client, err := api.NewClientWithResponses(url, auth)
	if err != nil {
		return err
	}
	begun, err := client.ExecuteWithResponse(ctx, nil, api.Execute{
		Session: "go-client",
		Cells:   []api.Cell{{Code: "import time\nfor i in range(3):\n    print('step', i, flush=True)\n    time.sleep(.2)"}, {Code: "6 * 7"}},
	})
	if err != nil {
		return err
	}
	if begun.JSON201 == nil {
		return fmt.Errorf("begin: %s: %s", begun.Status(), begun.Body)
	}
	id := begun.JSON201.Id
	printed, err := follow(ctx, client, id)
	if err != nil {
		return err
	}
	if printed != "step 0\nstep 1\nstep 2\n" {
		return fmt.Errorf("the stream printed %q", printed)
	}
	wait := float32(60)
	ended, err := client.ExecutionWithResponse(ctx, id, &api.ExecutionParams{Wait: &wait})
	if err != nil {
		return err
	}
	if ended.JSON200 == nil || ended.JSON200.Result == nil {
		return fmt.Errorf("the result: %s: %s", ended.Status(), ended.Body)
	}
	r := ended.JSON200.Result
	if r.Outcome != "ok" || len(r.Cells) != 2 || r.Cells[1].Output != "42" || r.Session != "go-client" {
		return fmt.Errorf("the result is %s", ended.Body)
	}
	return nil
}

// follow reads the events of an execution as they come, and returns what it printed.
func follow(ctx context.Context, client *api.ClientWithResponses, id string) (string, error) {
	resp, err := client.Events(ctx, id, nil)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var printed strings.Builder
	lines := bufio.NewScanner(resp.Body)
	for want := 1; lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var e struct {
			Seq        int
			Type, Text string
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return "", err
		}
		if e.Seq != want {
			return "", fmt.Errorf("event %d comes in the place of %d", e.Seq, want)
		}
		want++
		switch e.Type {
		case "stdout":
			printed.WriteString(e.Text)
		case "final":
			return printed.String(), nil
		}
	}
	return "", errors.Join(errors.New("the stream ended before the execution"), lines.Err())
}
