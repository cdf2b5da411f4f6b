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
)

// options are those of the examples: the interpreter that the tests use, in a
// home of their own.
func options() coppice.Options {
	python := os.Getenv("COPPICE_TEST_PYTHON")
	if python == "" {
		python, _ = filepath.Abs(filepath.Join(".cache", "python", "bin", "python"))
	}
	return coppice.Options{Python: python, Home: os.TempDir()}
}

// A host runs cells in a session whose variables stay.
func ExampleStart() {
	ctx := context.Background()
	host, err := coppice.Start(ctx, options())
	if err != nil {
		log.Fatal(err)
	}
	defer host.Shutdown(ctx)

	session := host.Session(messages.SessionKey{Session: "example"})
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

	session := host.Session(messages.SessionKey{Session: "example"})
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

// A call that takes too long is interrupted, and its session goes on.
func ExampleSession_Execute_timeout() {
	ctx := context.Background()
	host, err := coppice.Start(ctx, options())
	if err != nil {
		log.Fatal(err)
	}
	defer host.Shutdown(ctx)

	session := host.Session(messages.SessionKey{Session: "example"})
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

// Tools are what a host shows its model, and calls for it.
func ExampleHost_Tools() {
	ctx := context.Background()
	host, err := coppice.Start(ctx, options())
	if err != nil {
		log.Fatal(err)
	}
	defer host.Shutdown(ctx)

	tools, err := host.Tools(coppice.ToolOptions{})
	if err != nil {
		log.Fatal(err)
	}
	python := tools[0] // python.Schema and python.Description go to the model
	result, err := python.Call(ctx, coppice.ToolCall{
		Arguments: []byte(`{"cells": [{"code": "x = 40", "title": "set"}, {"code": "x + 2"}]}`),
		Session:   messages.SessionKey{Session: "agent 7"},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Text)
	// Output:
	// [1/2] set (ok)
	//
	// [2/2]
	// 42
}
