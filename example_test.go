package coppice_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/notebook"
	"github.com/coppice-run/coppice/notebook/run"
)

// options are those of the examples: the interpreter that the tests use, in a
// home of their own, and the backend whose sessions cost little.
func options() coppice.Options {
	python := os.Getenv("COPPICE_TEST_PYTHON")
	if python == "" {
		python, _ = filepath.Abs(filepath.Join(".cache", "python", "bin", "python"))
	}
	return coppice.Options{Python: python, Home: os.TempDir(), Backend: coppice.Runner(coppice.RunnerOptions{})}
}

// A host runs cells in a session whose variables stay.
func ExampleStart() {
	ctx := context.Background()
	host, err := coppice.Start(ctx, options())
	if err != nil {
		log.Fatal(err)
	}
	defer host.Shutdown(ctx)

	session := host.Session("example")
	for _, code := range []string{"x = 40", "x + 2"} {
		result, err := session.Execute(ctx, coppice.Request{Cells: []messages.Cell{{Code: code}}})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(result.Outcome, result.State, result.Text)
	}
	// Output:
	// ok fresh (no output)
	// ok kept 42
}

// Stream tells what happens while it happens; its last event is the result.
func ExampleSession_Stream() {
	ctx := context.Background()
	host, err := coppice.Start(ctx, options())
	if err != nil {
		log.Fatal(err)
	}
	defer host.Shutdown(ctx)

	session := host.Session("example")
	request := coppice.Request{Cells: []messages.Cell{{Code: "print('hello')"}}}
	for event, err := range session.Stream(ctx, request) {
		if err != nil {
			log.Fatal(err)
		}
		switch e := event.(type) {
		case messages.Stream:
			fmt.Print(e.Name, ": ", e.Text)
		case messages.Final:
			fmt.Println("final:", e.Result.Outcome)
		}
	}
	// Output:
	// stdout: hello
	// final: ok
}

// Code in cells calls functions of the host, and gets their errors as exceptions.
func ExampleFunction() {
	type query struct {
		Word  string `json:"word"`
		Limit int    `json:"limit,omitempty"`
	}
	search := coppice.Function("search", "Searches the manual.", func(_ context.Context, q query) ([]string, error) {
		if q.Word == "" {
			return nil, &messages.HostError{Type: "ValueError", Message: "there is no word"}
		}
		return []string{q.Word + " 1", q.Word + " 2", q.Word + " 3"}[:q.Limit], nil
	})
	ctx := context.Background()
	o := options()
	o.Backend = coppice.Runner(coppice.RunnerOptions{})
	o.HostCalls.Functions = []coppice.HostFunction{search}
	host, err := coppice.Start(ctx, o)
	if err != nil {
		log.Fatal(err)
	}
	defer host.Shutdown(ctx)

	result, err := host.Session("example").Execute(ctx, coppice.Request{Cells: []messages.Cell{{Code: `
print(tool.search(word="tree", limit=2))
try:
    tool.search(word="")
except ValueError as e:
    print("refused:", e)
try:
    tool.search(word=5)
except TypeError as e:
    print(e)`}}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Text)
	// Output:
	// ['tree 1', 'tree 2']
	// refused: there is no word
	// search(): word must be a string, not a JSON number
}

// A notebook is run in a session, and keeps what its cells show.
func ExampleSession_RunNotebook() {
	ctx := context.Background()
	o := options()
	o.Backend = coppice.Runner(coppice.RunnerOptions{})
	host, err := coppice.Start(ctx, o)
	if err != nil {
		log.Fatal(err)
	}
	defer host.Shutdown(ctx)

	doc := notebook.New() // notebook.Open reads a file, whose Save goes into the options
	for _, code := range []string{"x = 40", "print(x + 2)", "1 / 0", "print('not run')"} {
		if _, err := doc.Append(notebook.NewCell{Source: code}); err != nil {
			log.Fatal(err)
		}
	}
	report, err := host.Session("example").RunNotebook(ctx, doc, run.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(report.Outcome, " in cell ", report.Next, "; cell 1 shows ", doc.Cell(1).Outputs()[0].Text)
	// Output: error in cell 2; cell 1 shows 42
}

// A session is copied with all that it has in memory, in milliseconds.
func ExampleSession_Fork() {
	ctx := context.Background()
	o := options()
	o.Backend = coppice.Runner(coppice.RunnerOptions{})
	host, err := coppice.Start(ctx, o)
	if err != nil {
		log.Fatal(err)
	}
	defer host.Shutdown(ctx)

	run := func(s *coppice.Session, code string) {
		result, err := s.Execute(ctx, coppice.Request{Cells: []messages.Cell{{Code: code}}})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(result.Text)
	}
	session := host.Session("example")
	run(session, "words = ['tree']; words")
	copies, err := session.Fork(ctx, coppice.ForkOptions{Copies: 2})
	if err != nil {
		log.Fatal(err)
	}
	run(copies[0], "words += ['stool']; words")
	run(copies[1], "words")
	// Output:
	// ['tree']
	// ['tree', 'stool']
	// ['tree']
}

// A call that takes too long is interrupted, and its session goes on.
func ExampleSession_Execute_timeout() {
	ctx := context.Background()
	host, err := coppice.Start(ctx, options())
	if err != nil {
		log.Fatal(err)
	}
	defer host.Shutdown(ctx)

	session := host.Session("example")
	request := coppice.Request{
		Cells:   []messages.Cell{{Title: "prepare", Code: "x = 1"}, {Title: "loop", Code: "while True: pass"}},
		Timeout: time.Second,
	}
	result, err := session.Execute(ctx, request)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Outcome, result.Cells[0].Outcome, result.Cells[1].Outcome)
	fmt.Println(strings.Contains(result.Text, "Command timed out after 1 seconds"))

	result, err = session.Execute(ctx, coppice.Request{Cells: []messages.Cell{{Code: "x"}}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.State, result.Text)
	// Output:
	// timeout ok timeout
	// true
	// kept 1
}

// Command runs a shell command, on a host that allows it.
func ExampleHost_Command() {
	ctx := context.Background()
	o := options()
	o.Bash = true
	host, err := coppice.Start(ctx, o)
	if err != nil {
		log.Fatal(err)
	}
	defer host.Shutdown(ctx)

	result, err := host.Command(ctx, coppice.Command{Script: "echo hello; exit 3", Timeout: 10 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Outcome, *result.Cells[0].ExitCode)
	fmt.Println(result.Text)
	// Output:
	// error 3
	// hello
	//
	// Command exited with code 3
}
