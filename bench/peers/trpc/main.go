// Command trpc measures the local code executor of trpc-agent-go as the scripts beside it measure
// others: "trpc CREATES CALLS" prints the seconds that each new session took to its first result,
// and each 1+1, as one JSON object. PEER_PYTHON is the interpreter, found as python3.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"trpc.group/trpc-go/trpc-agent-go/codeexecutor"
	"trpc.group/trpc-go/trpc-agent-go/codeexecutor/local"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "trpc:", err)
		os.Exit(1)
	}
}

// told is what is printed.
type told struct {
	Create []float64 `json:"create"`
	Exec   []float64 `json:"exec"`
}

func run(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("say how many sessions and how many calls, not %q", args)
	}
	creates, err := strconv.Atoi(args[0])
	if err != nil {
		return fmt.Errorf("read the number of sessions: %w", err)
	}
	calls, err := strconv.Atoi(args[1])
	if err != nil {
		return fmt.Errorf("read the number of calls: %w", err)
	}
	if python := os.Getenv("PEER_PYTHON"); python != "" {
		if err := os.Setenv("PATH", filepath.Dir(python)+string(os.PathListSeparator)+os.Getenv("PATH")); err != nil {
			return err
		}
	}
	var t told
	for n := range creates {
		begin := time.Now()
		executor := local.New(local.WithTimeout(time.Minute))
		if err := call(ctx, executor); err != nil {
			return err
		}
		t.Create = append(t.Create, time.Since(begin).Seconds())
		for i := 0; n == 0 && i < calls; i++ {
			begin := time.Now()
			if err := call(ctx, executor); err != nil {
				return err
			}
			t.Exec = append(t.Exec, time.Since(begin).Seconds())
		}
	}
	return json.NewEncoder(os.Stdout).Encode(t)
}

// call has a block of code run. The executor shows what is printed, and no results.
func call(ctx context.Context, executor codeexecutor.CodeExecutor) error {
	r, err := executor.ExecuteCode(ctx, codeexecutor.CodeExecutionInput{
		CodeBlocks: []codeexecutor.CodeBlock{{Code: "print(1+1)", Language: "python"}},
	})
	if err != nil {
		return err
	}
	if strings.TrimSpace(r.Output) != "2" {
		return fmt.Errorf("it printed %q", r.Output)
	}
	return nil
}
