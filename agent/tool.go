package agent

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
)

// Tool is something that an agent can call by name, with arguments in JSON: what
// a host puts before its model. It is a value and may be used from any
// goroutine; calls of one session run one after the other, as those of
// [coppice.Session.Execute] do.
type Tool struct {
	// Name is what the model calls: "python", "bash".
	Name string
	// Label is the name for people.
	Label string
	// Description tells the model what the tool does and how to use it.
	Description string
	// Schema is the JSON schema of the arguments, of the draft 2020-12.
	Schema json.RawMessage
	// ReadOnly says that a call changes nothing, Destructive that it may destroy
	// what cannot be brought back.
	ReadOnly, Destructive bool
	// Launched is the id of the tool of the launcher that this one runs; "" for
	// the host's own tools, which run code.
	Launched string

	sessions bool
	call     func(context.Context, Call) (Result, error)
}

// Call is one call of a tool.
type Call struct {
	// Arguments are the JSON object that the model sent; empty means {}.
	Arguments json.RawMessage
	// Session is whose state the call uses: its Session is a name of its own for
	// each conversation, and its Cwd what the argument cwd is relative to. A tool
	// that runs code needs a name, so that conversations do not meet by accident:
	// the call is refused with [ErrNoSession]. The argument session, if the tool has
	// it, names one within this one, as "NAME/ARGUMENT".
	Session messages.SessionKey
	// Owner is the agent that calls, see [coppice.Request].
	Owner string
	// OnEvent hears the events of the call while it runs, from one goroutine.
	// While it does not return, the producer of the output is held back. nil: no
	// one hears them.
	OnEvent func(messages.Event)
	// Input answers the questions of the call's code, see [coppice.Request]. nil:
	// input() fails.
	Input coppice.InputHandler

	sessions bool // the tool has the argument session
}

// Result is what a call came to.
type Result struct {
	// Text is what the model reads. It is never empty.
	Text string
	// Images are the pictures that the call showed.
	Images []messages.Image
	// IsError says that the call did not do what was asked: code raised, the
	// time was up, the kernel died, or the arguments were wrong.
	IsError bool
	// Result tells everything, for programs; nil for a tool that runs no code,
	// and when nothing was run.
	Result *messages.Result
	// Run is the same of a tool of the launcher; nil for all others.
	Run *messages.ToolResult
}

// Error says that a call could not be made: nothing was run. The model can
// mend it, so that a host should show it the text.
type Error struct {
	// Tool is the tool's name, Argument the path of what is wrong:
	// "cells[1].code", "" for the arguments as a whole.
	Tool, Argument string
	// Problem names it and the next step.
	Problem string
}

// Error names the tool, the argument and the problem.
func (e *Error) Error() string {
	if e.Argument == "" {
		return e.Tool + ": " + e.Problem
	}
	return e.Tool + ": " + e.Argument + ": " + e.Problem
}

// Call makes a call. The error is an *[Error] when the arguments cannot be used,
// [ErrNoSession] when the host has not said whose state the call uses, and
// [coppice.ErrClosed] after Shutdown; everything else that can go wrong is reported in
// the result. When ctx ends the call is interrupted, and the result says so. Any
// goroutine may call it.
func (t Tool) Call(ctx context.Context, c Call) (Result, error) {
	if t.call == nil {
		return Result{}, &Error{Tool: t.Name, Problem: "is the zero value; take tools from agent.Tools"}
	}
	c.sessions = t.sessions
	r, err := t.call(ctx, c)
	if e, ok := errors.AsType[*Error](err); ok && e.Tool == "" {
		e.Tool = t.Name
	}
	return r, err
}

// ErrNoSession is returned by a call of a tool that does not say whose state it uses:
// one session for all would show each conversation the variables of the others.
var ErrNoSession = errors.New("the call has no session: give each conversation a name of its own, with Call.Session or an adapter's Options.Session")
