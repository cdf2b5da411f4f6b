package coppice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/coppice-run/coppice/internal/home"
	"github.com/coppice-run/coppice/messages"
)

// Tool is something that an agent can call by name, with arguments in JSON: what
// a host puts before its model. It is a value and may be used from any
// goroutine; calls of one session run one after the other, as those of
// [Session.Execute] do.
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
	call     func(context.Context, ToolCall) (ToolResult, error)
}

// ToolCall is one call of a tool.
type ToolCall struct {
	// Arguments are the JSON object that the model sent; empty means {}.
	Arguments json.RawMessage
	// Session is whose state the call uses: its Session is a name of its own for
	// each conversation, and its Cwd what the argument cwd is relative to. A tool
	// that runs code needs a name, so that conversations do not meet by accident:
	// the call is refused with ErrNoSession. The argument session, if the tool has
	// it, names one within this one, as "NAME/ARGUMENT".
	Session messages.SessionKey
	// Owner is the agent that calls, see [Request.Owner].
	Owner string
	// OnEvent hears the events of the call while it runs, from one goroutine.
	// While it does not return, the producer of the output is held back. nil:
	// nobody.
	OnEvent func(messages.Event)
	// Input answers the questions of the call's code, see [Request.Input]. nil:
	// input() fails.
	Input InputHandler

	sessions bool // the tool has the argument session
}

// ToolResult is what a call came to.
type ToolResult struct {
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
	// Run is the same of a tool of the launcher, nil of all others.
	Run *messages.ToolResult
}

// ToolError says that a call could not be made: nothing was run. The model can
// mend it, so that a host should show it the text.
type ToolError struct {
	// Tool is the tool's name, Argument the path of what is wrong:
	// "cells[1].code", "" for the arguments as a whole.
	Tool, Argument string
	// Problem names it and the next step.
	Problem string
}

// Error names the tool, the argument and the problem.
func (e *ToolError) Error() string {
	if e.Argument == "" {
		return e.Tool + ": " + e.Problem
	}
	return e.Tool + ": " + e.Argument + ": " + e.Problem
}

// Call makes a call. The error is a *[ToolError] when the arguments cannot be
// used, [ErrNoSession] when the host has not said whose state the call uses, and
// [ErrClosed] after Shutdown; everything else that can go wrong is told in the
// result. When ctx ends the call is interrupted, and the result says
// so.
func (t Tool) Call(ctx context.Context, c ToolCall) (ToolResult, error) {
	if t.call == nil {
		return ToolResult{}, &ToolError{Tool: t.Name, Problem: "is the zero value; take tools from Host.Tools"}
	}
	c.sessions = t.sessions
	r, err := t.call(ctx, c)
	if e, ok := errors.AsType[*ToolError](err); ok && e.Tool == "" {
		e.Tool = t.Name
	}
	return r, err
}

// ErrNoSession is returned by a call of a tool that says not whose state it uses:
// one session for all would show each conversation the variables of the others.
var ErrNoSession = errors.New("the call has no session: give each conversation a name of its own, with ToolCall.Session or an adapter's Options.Session")

// DefaultSession is the name that commands give the session of who names none. No
// call of a library means it by leaving the name out.
const DefaultSession = "default"

// ToolMode says which of the tools python and bash a model gets.
type ToolMode string

const (
	// ToolsBoth gives both. It is the default.
	ToolsBoth ToolMode = "both"
	// ToolsPython gives python alone.
	ToolsPython ToolMode = "ipy-only"
	// ToolsBash gives bash alone.
	ToolsBash ToolMode = "bash-only"
)

// ToolStyle is the shape of the tools that run Python.
type ToolStyle string

const (
	// StylePython is one tool, python, that takes a list of cells. It is the
	// default.
	StylePython ToolStyle = "python"
	// StyleEval is one tool, eval, whose cells have a language, a timeout and a
	// reset each.
	StyleEval ToolStyle = "eval"
	// StyleREPL is the pair execute_code and reset_repl.
	StyleREPL ToolStyle = "repl"
)

// ToolOptions says which tools a model gets. The zero value of each field is its
// default.
type ToolOptions struct {
	// Mode says which of python and bash. "": PI_PY from Options.Env (0 or bash,
	// 1 or py, mix or both), else both. Without [Options.Bash] there is no bash.
	Mode ToolMode
	// Style is the shape of the tool for Python. "": StylePython.
	Style ToolStyle
	// Notebooks adds the tools notebook_read, notebook_edit and notebook_run, the
	// last of them where a model may run Python.
	Notebooks bool
	// SessionArgument adds the argument session: a model then has several sessions
	// in one conversation, see [ToolCall.Session].
	SessionArgument bool
	// Proxy takes the calls of all these tools in place of this host, unread: for a
	// process whose parent has the sessions. It is given the tool's name, and may be
	// called from any goroutine. With it Python is not looked for here. nil: this
	// host makes them.
	Proxy func(ctx context.Context, tool string, c ToolCall) (ToolResult, error)
	// Cwd is the working directory whose modules the descriptions list. "": that of
	// this process.
	Cwd string
}

// Tools returns the tools for a model: those for code, and with
// Options.Launcher those of its folder as it is now, as tool_NAME. The error
// matches [ErrOptions] when an option is wrong.
//
// When Python cannot be used and there is bash, bash alone is given, and its
// description says why: see [Host.ToolMode], and [Host.CheckPython], which takes a
// tenth of a second the first time. A host without bash gives its Python tools all
// the same: their calls say what is wrong.
func (h *Host) Tools(o ToolOptions) ([]Tool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), preflightTime)
	defer cancel()
	mode, why, err := h.ToolMode(ctx, o)
	if err != nil {
		return nil, err
	}
	if why != "" {
		h.o.Logger.Warn("agents get bash alone", "why", why)
	}
	var tools []Tool
	switch o.Style {
	case "", StylePython:
		tools = []Tool{h.pythonTool(o)}
	case StyleEval:
		tools = []Tool{h.evalTool(o)}
	case StyleREPL:
		tools = []Tool{h.executeCodeTool(o), h.resetTool(o)}
	default:
		return nil, fmt.Errorf("%w: the tool style %q is not one of python, eval, repl", ErrOptions, o.Style)
	}
	if mode == ToolsBash {
		tools = nil
	}
	if mode != ToolsPython && h.o.Bash {
		bash := h.bashTool(o)
		if why != "" {
			bash.Description += "\n- There is no tool for Python in this session: " + why
		}
		tools = append(tools, bash)
	}
	if o.Notebooks {
		tools = append(tools, h.notebookTools(o, mode)...)
	}
	for i := range tools {
		tools[i].sessions = o.SessionArgument
	}
	launched, err := h.launchedTools()
	tools = append(tools, launched...)
	if o.Proxy != nil {
		for i := range tools {
			name := tools[i].Name
			tools[i].call = func(ctx context.Context, c ToolCall) (ToolResult, error) { return o.Proxy(ctx, name, c) }
		}
	}
	return tools, err
}

// toolMode resolves the mode: the option, the environment, the default.
func (h *Host) toolMode(m ToolMode) (ToolMode, error) {
	switch m {
	case ToolsBoth, ToolsPython, ToolsBash:
		return m, nil
	case "":
	default:
		return "", fmt.Errorf("%w: the tool mode %q is not one of both, ipy-only, bash-only", ErrOptions, m)
	}
	if m = toolModeOf(home.Lookup(h.o.Env, "PI_PY")); m == "" {
		m = ToolsBoth
	}
	return m, nil
}

// toolModeOf is the mode that a value of PI_PY asks for, "" when it asks for none.
func toolModeOf(py string) ToolMode { return ToolMode(home.ToolMode(py)) }

// sessionOf is the session that a call uses.
func (h *Host) sessionOf(c ToolCall, name, cwd string) (*Session, error) {
	key := c.Session
	switch {
	case name != "" && !c.sessions:
		return nil, &ToolError{Problem: `there is no argument "session"; see the tool's schema`}
	case key.Session == "":
		return nil, ErrNoSession
	case name != "":
		key.Session += "/" + name
	}
	s := h.Session(key.Session, In(key.In(cwd).Cwd))
	if bad, ok := errors.AsType[*RequestError](s.err); ok {
		return nil, &ToolError{Argument: bad.Field, Problem: bad.Problem}
	}
	return s, s.err
}

// run makes a call of a session and reports its events.
func (c ToolCall) run(ctx context.Context, s *Session, r Request) (messages.Result, error) {
	r.Owner, r.Input = c.Owner, c.Input
	if c.OnEvent == nil {
		result, err := s.Execute(ctx, r)
		if _, refused := errors.AsType[*messages.NotStartedError](err); refused {
			err = nil // the result says so to the model
		}
		return result, err
	}
	var result messages.Result
	for e, err := range s.Stream(ctx, r) {
		if err != nil {
			return result, err
		}
		if final, ok := e.(messages.Final); ok {
			result = final.Result
			continue
		}
		c.OnEvent(e)
	}
	return result, nil
}

// toolResult is what a model gets of a result.
func toolResult(r messages.Result, err error) (ToolResult, error) {
	if bad, ok := errors.AsType[*RequestError](err); ok {
		return ToolResult{}, &ToolError{Argument: bad.Field, Problem: bad.Problem}
	}
	if err != nil {
		return ToolResult{}, err
	}
	return ToolResult{Text: r.Text, Images: r.Images, IsError: r.Outcome != messages.OutcomeOK, Result: &r}, nil
}
