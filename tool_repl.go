package coppice

import (
	"context"

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
func (h *Host) executeCodeTool(o ToolOptions) Tool {
	return Tool{
		Name: "execute_code", Label: "Execute code", Description: executeCodeDescription, Destructive: true,
		Schema: render(schema(o.common(
			property{name: "code", schema: text("Python code to execute."), required: true},
			replLimits.property("timeout_seconds"),
		)...)),
		call: h.callExecuteCode,
	}
}

func (h *Host) callExecuteCode(ctx context.Context, c ToolCall) (ToolResult, error) {
	var a struct {
		Code    *string  `json:"code"`
		Timeout *float64 `json:"timeout_seconds"`
		Cwd     string   `json:"cwd"`
		Session string   `json:"session"`
	}
	if err := arguments(c, &a); err != nil {
		return ToolResult{}, err
	}
	if a.Code == nil {
		return ToolResult{}, &ToolError{Argument: "code", Problem: "is missing; pass the Python code as a string"}
	}
	timeout, err := replLimits.timeout(a.Timeout)
	if err != nil {
		return ToolResult{}, &ToolError{Argument: "timeout_seconds", Problem: "is not a number of seconds"}
	}
	s, err := h.sessionOf(c, a.Session, a.Cwd)
	if err != nil {
		return ToolResult{}, err
	}
	r, err := c.run(ctx, s, Request{Cells: []messages.Cell{{Code: *a.Code}}, Timeout: timeout})
	if err == nil {
		r = h.limit(r, result.DefaultTokens)
	}
	return toolResult(r, err)
}

// resetTool clears the session.
func (h *Host) resetTool(o ToolOptions) Tool {
	return Tool{
		Name: "reset_repl", Label: "Reset the REPL", Destructive: true,
		Description: "Clears the REPL: the next execute_code starts with no variables, in a new interpreter.",
		Schema:      render(schema(o.common()...)),
		call:        h.callReset,
	}
}

func (h *Host) callReset(ctx context.Context, c ToolCall) (ToolResult, error) {
	var a struct {
		Cwd     string `json:"cwd"`
		Session string `json:"session"`
	}
	if err := arguments(c, &a); err != nil {
		return ToolResult{}, err
	}
	s, err := h.sessionOf(c, a.Session, a.Cwd)
	if err != nil {
		return ToolResult{}, err
	}
	if err := s.Reset(ctx); err != nil {
		return ToolResult{}, err
	}
	return ToolResult{Text: "The REPL was reset: all variables are gone."}, nil
}
