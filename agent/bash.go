package agent

import (
	"context"
	"errors"
	"strings"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
)

var bashLimits = limits{def: 30, least: 1, most: 600}

const bashDescription = `Runs a shell command with bash and returns what it prints and its exit code.

- Each call is a shell of its own: cd and variables do not last. Use cwd for another directory.
- There is no terminal and no input. Programs that would ask fail.
- What the command leaves in the background is ended with it.
- Output that is too long is cut; the result names the artifact that has all of it.`

// bashTool runs shell commands.
func (k kit) bashTool() Tool {
	return Tool{
		Name: "bash", Label: "Bash", Description: bashDescription, Destructive: true,
		Schema: render(schema(k.o.common(
			property{name: "command", schema: text("The command, or a script of several lines."), required: true},
			bashLimits.property("timeout"),
		)...)),
		call: k.callBash,
	}
}

func (k kit) callBash(ctx context.Context, c Call) (Result, error) {
	var a struct {
		Command *string  `json:"command"`
		Timeout *float64 `json:"timeout"`
		Cwd     string   `json:"cwd"`
		Session string   `json:"session"`
	}
	if err := arguments(c, &a); err != nil {
		return Result{}, err
	}
	switch {
	case a.Command == nil || strings.TrimSpace(*a.Command) == "":
		return Result{}, &Error{Argument: "command", Problem: "is missing; pass the shell command as a string"}
	case strings.ContainsRune(*a.Command, 0):
		return Result{}, &Error{Argument: "command", Problem: "holds a NUL character, which no shell can take"}
	}
	timeout, err := bashLimits.timeout(a.Timeout)
	if err != nil {
		return Result{}, err
	}
	key, err := keyOf(c, a.Session, a.Cwd)
	if err != nil {
		return Result{}, err
	}
	r, err := k.host.Command(ctx, coppice.Command{
		Script: *a.Command, Cwd: key.Cwd, Timeout: timeout, Session: key.Session, Owner: c.Owner, OnEvent: c.OnEvent,
	})
	if _, refused := errors.AsType[*messages.NotStartedError](err); refused {
		err = nil // the result says so to the model
	}
	return resultOf(r, err)
}
