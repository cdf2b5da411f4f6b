package agent

import (
	"context"
	"fmt"
	"slices"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks"
)

var pythonLimits = limits{def: 30, least: 1, most: 600}

const pythonDescription = `Runs Python in a session that stays alive: variables, imports and functions are there in the next call.

- Write small cells, one step each. They run in order; the first one that fails ends the call. Earlier cells have run and their state persists: mend the failed cell only and go on from there.
- The value of the last expression of a cell is shown, as are display(), prints, pictures (matplotlib), tables (pandas) and what child processes print. A final semicolon hides the value.
- Top-level await works, and so do the magics %cd, %env, %time, %pip, %%bash and !command.
- The result says when variables are gone, because a kernel died or was replaced. reset starts afresh on purpose.
- Output that is too long is cut; the result names the artifact that has all of it.`

// pythonTool runs cells.
func (k kit) pythonTool() Tool {
	cell := schema(
		property{name: "code", schema: text("Python code of the cell."), required: true},
		property{name: "title", schema: text("A few words about what the cell does.")},
	)
	return Tool{
		Name: "python", Label: "Python", Description: pythonDescription + k.helperDocs() + callableDocs(k.host), Destructive: true,
		Schema: render(schema(k.o.common(
			property{name: "cells", schema: map[string]any{"type": "array", "items": cell, "description": "Cells to run, in order."}, required: true},
			pythonLimits.property("timeout"),
			property{name: "reset", schema: map[string]any{"type": "boolean", "default": false, "description": "Start a new kernel before the first cell. What the host keeps for code (backends, conversations, forks) stays."}},
		)...)),
		call: k.callPython,
	}
}

func (k kit) callPython(ctx context.Context, c Call) (Result, error) {
	var a struct {
		Cells []struct {
			Code  *string `json:"code"`
			Title string  `json:"title"`
		} `json:"cells"`
		Timeout *float64 `json:"timeout"`
		Cwd     string   `json:"cwd"`
		Reset   bool     `json:"reset"`
		Session string   `json:"session"`
	}
	if err := arguments(c, &a); err != nil {
		return Result{}, err
	}
	if a.Cells == nil {
		return Result{}, &Error{Argument: "cells", Problem: "is missing; pass a list of {code, title}"}
	}
	r := coppice.Request{Reset: a.Reset}
	for i, cell := range a.Cells {
		if cell.Code == nil {
			return Result{}, &Error{Argument: fmt.Sprintf("cells[%d].code", i), Problem: "is missing; pass the Python code as a string"}
		}
		r.Cells = append(r.Cells, messages.Cell{Code: *cell.Code, Title: cell.Title})
	}
	var err error
	if r.Timeout, err = pythonLimits.timeout(a.Timeout); err != nil {
		return Result{}, err
	}
	s, err := k.session(c, a.Session, a.Cwd)
	if err != nil {
		return Result{}, err
	}
	return resultOf(c.run(ctx, s, r))
}

var evalLimits = limits{def: 30, least: 1, most: 3600}

// evalTool runs cells that have a timeout and a reset each.
func (k kit) evalTool() Tool {
	cell := schema(
		property{name: "language", schema: map[string]any{"type": "string", "enum": []string{"py"}, "description": "The language of the cell."}, required: true},
		property{name: "code", schema: text("The code of the cell."), required: true},
		property{name: "title", schema: text("A few words about what the cell does.")},
		evalLimits.property("timeout"),
		property{name: "reset", schema: map[string]any{"type": "boolean", "default": false, "description": "Start a new kernel before this cell. What the host keeps for code (backends, conversations, forks) stays."}},
	)
	return Tool{
		Name: "eval", Label: "Eval", Description: pythonDescription + k.helperDocs() + callableDocs(k.host), Destructive: true,
		Schema: render(schema(k.o.common(
			property{name: "cells", schema: map[string]any{"type": "array", "minItems": 1, "items": cell, "description": "Cells to run, in order."}, required: true},
		)...)),
		call: k.callEval,
	}
}

func (k kit) callEval(ctx context.Context, c Call) (Result, error) {
	var a struct {
		Cells []struct {
			Language string   `json:"language"`
			Code     *string  `json:"code"`
			Title    string   `json:"title"`
			Timeout  *float64 `json:"timeout"`
			Reset    bool     `json:"reset"`
		} `json:"cells"`
		Cwd     string `json:"cwd"`
		Session string `json:"session"`
	}
	if err := arguments(c, &a); err != nil {
		return Result{}, err
	}
	if len(a.Cells) == 0 {
		return Result{}, &Error{Argument: "cells", Problem: "is empty; pass at least one cell"}
	}
	requests := make([]coppice.Request, len(a.Cells))
	for i, cell := range a.Cells {
		at := fmt.Sprintf("cells[%d]", i)
		timeout, err := evalLimits.timeout(cell.Timeout)
		switch {
		case err != nil:
			return Result{}, &Error{Argument: at + ".timeout", Problem: "is not a number of seconds"}
		case cell.Code == nil:
			return Result{}, &Error{Argument: at + ".code", Problem: "is missing; pass the code as a string"}
		case cell.Language != "py":
			return Result{}, &Error{Argument: at + ".language", Problem: fmt.Sprintf(`%q is not available in this session; pass language: "py"`, cell.Language)}
		}
		requests[i] = coppice.Request{Cells: []messages.Cell{{Code: *cell.Code, Title: cell.Title}}, Timeout: timeout, Reset: cell.Reset}
	}
	s, err := k.session(c, a.Session, a.Cwd)
	if err != nil {
		return Result{}, err
	}
	return resultOf(c.runEach(ctx, s, requests))
}

// runEach makes a call for each cell and returns them as one result.
func (c Call) runEach(ctx context.Context, s *coppice.Session, requests []coppice.Request) (messages.Result, error) {
	var all messages.Result
	for i, r := range requests {
		if i > 0 && all.Outcome != messages.OutcomeOK {
			all.Cells = append(all.Cells, messages.CellResult{Index: i, Title: r.Cells[0].Title, Status: messages.CellPending, Outcome: messages.OutcomeNotStarted})
			all.Progress.Cells = len(all.Cells)
			continue
		}
		one := c
		if c.OnEvent != nil {
			one.OnEvent = func(e messages.Event) {
				p := e.Pos()
				p.Cell = i
				c.OnEvent(e.At(p))
			}
		}
		result, err := one.run(ctx, s, r)
		if err != nil {
			return result, err
		}
		for j := range result.Cells {
			result.Cells[j].Index = i
		}
		if i > 0 {
			result = joined(all, result)
		}
		all = result
	}
	all.Text = sinks.BuildText(all)
	return all, nil
}

// joined is one result for two calls that followed each other.
func joined(a, b messages.Result) messages.Result {
	b.Progress = a.HowFar().Then(b.HowFar())
	b.Cells = append(a.Cells, b.Cells...)
	b.JSON = append(a.JSON, b.JSON...)
	b.Images = append(a.Images, b.Images...)
	b.StdinRequested = a.StdinRequested || b.StdinRequested
	b.Duration += a.Duration
	b.Notices = append(slices.Clone(a.Notices), b.Notices...)
	if b.State == messages.StateKept { // what the first call said of the state holds for both
		b.State, b.Reason = a.State, a.Reason
	}
	if b.Truncation == nil {
		b.Truncation, b.Artifact, b.NotKept = a.Truncation, a.Artifact, a.NotKept
	}
	return b
}
