package agent

import (
	"context"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks/result"
)

var replLimits = limits{def: 600, least: 1, most: 3600}

const executeCodeDescription = `Executes Python code in a REPL that stays alive and returns what it shows.

- Variables, imports and functions persist between calls. The value of the last expression is shown; top-level await works.
- input() can ask the user. The time that it waits does not count.
- timeout_seconds bounds the call; 600 if it is left out. A call that is too long is interrupted, and the variables are kept.
- Output that is too long is cut; the result names the file that has all of it.`

// executeCodeTool runs one piece of code.
func (k kit) executeCodeTool() Tool {
	return Tool{
		Name: "execute_code", Label: "Execute code", Description: executeCodeDescription + callableDocs(k.host), Destructive: true,
		Schema: render(schema(k.o.common(
			property{name: "code", schema: text("Python code to execute."), required: true},
			replLimits.property("timeout_seconds"),
		)...)),
		call: k.callExecuteCode,
	}
}

func (k kit) callExecuteCode(ctx context.Context, c Call) (Result, error) {
	var a struct {
		Code    *string  `json:"code"`
		Timeout *float64 `json:"timeout_seconds"`
		Cwd     string   `json:"cwd"`
		Session string   `json:"session"`
	}
	if err := arguments(c, &a); err != nil {
		return Result{}, err
	}
	if a.Code == nil {
		return Result{}, &Error{Argument: "code", Problem: "is missing; pass the Python code as a string"}
	}
	timeout, err := replLimits.timeout(a.Timeout)
	if err != nil {
		return Result{}, &Error{Argument: "timeout_seconds", Problem: "is not a number of seconds"}
	}
	s, err := k.session(c, a.Session, a.Cwd)
	if err != nil {
		return Result{}, err
	}
	return resultOf(c.run(ctx, s, coppice.Request{Cells: []messages.Cell{{Code: *a.Code}}, Timeout: timeout, Tokens: result.DefaultTokens}))
}

// resetTool clears the session.
func (k kit) resetTool() Tool {
	return Tool{
		Name: "reset_repl", Label: "Reset the REPL", Destructive: true,
		Description: "Clears the REPL: the next execute_code starts with no variables, in a new interpreter. " + backendsStay,
		Schema:      render(schema(k.o.common()...)),
		call:        k.callReset,
	}
}

func (k kit) callReset(ctx context.Context, c Call) (Result, error) {
	var a struct {
		Cwd     string `json:"cwd"`
		Session string `json:"session"`
	}
	if err := arguments(c, &a); err != nil {
		return Result{}, err
	}
	s, err := k.session(c, a.Session, a.Cwd)
	if err != nil {
		return Result{}, err
	}
	if err := s.Reset(ctx); err != nil {
		return Result{}, err
	}
	return Result{Text: "The REPL was reset: all variables are gone."}, nil
}
