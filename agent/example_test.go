package agent_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/agent"
	"github.com/coppice-run/coppice/messages"
)

// Tools are what a host shows its model, and calls for it.
func ExampleTools() {
	ctx := context.Background()
	interpreter := os.Getenv("COPPICE_TEST_PYTHON") // "" is what a program leaves it at
	if interpreter == "" {
		interpreter, _ = filepath.Abs(filepath.Join("..", ".cache", "python", "bin", "python"))
	}
	host, err := coppice.Start(ctx, coppice.Options{Python: interpreter, Home: os.TempDir()})
	if err != nil {
		log.Fatal(err)
	}
	defer host.Shutdown(ctx)

	tools, err := agent.Tools(host, agent.Options{})
	if err != nil {
		log.Fatal(err)
	}
	python := tools[0] // python.Schema and python.Description go to the model
	result, err := python.Call(ctx, agent.Call{
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
