// Command tenlines gives an agent Python. The agent is played by a constant here;
// its ten lines of a host are those of the README. Set up Python once with
// `coppice setup`, or have none: then they run on any Python 3.9 or newer.
//
//	go run ./examples/tenlines
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/agent"
	"github.com/coppice-run/coppice/messages"
)

func main() {
	text, err := answer(context.Background(), json.RawMessage(`{"cells": [{"code": "sum(n * n for n in range(10))"}]}`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(text)
}

// answer makes the call that a model has asked for, with the arguments that it
// sent, and returns what the model is to read.
func answer(ctx context.Context, arguments json.RawMessage) (string, error) {
	host, err := coppice.Start(ctx, coppice.Options{})
	if err != nil {
		return "", err
	}
	defer host.Shutdown(context.Background())
	tools, err := agent.Tools(host, agent.Options{}) // Name, Description and Schema are for the model
	if err != nil {
		return "", err
	}
	result, err := tools[0].Call(ctx, agent.Call{Arguments: arguments, Session: messages.SessionKey{Session: "chat 7"}}) // "python"
	return result.Text, err
}
