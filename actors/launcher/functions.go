package launcher

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/coppice-run/coppice/internal/hostcall"
	"github.com/coppice-run/coppice/internal/toolbox"
	"github.com/coppice-run/coppice/messages"
)

// Function is a tool in the form in which it is offered to a model, or to
// the Python of a session: a function with a name, a schema and a way to call
// it. Any goroutine may call it.
type Function struct {
	// Name is the tool's id as an identifier: word_count.
	Name string `json:"name"`
	// Tool is the tool's id, and Label its name for people.
	Tool        string `json:"tool"`
	Label       string `json:"-"`
	Description string `json:"description"`
	// Schema describes the arguments as a JSON Schema (draft 2020-12) of type
	// object.
	Schema messages.RawJSON `json:"schema"`
	// Signature is the arguments as Python writes them, with the brackets, and Arguments
	// a line about each.
	Signature string `json:"-"`
	Arguments string `json:"-"`
	// Call makes a run with arguments that are a JSON object, and returns the
	// outputs as a JSON object. The error is a *messages.ToolError when the run
	// did not end well, or [ErrClosed]. The end of ctx cancels the run.
	Call func(ctx context.Context, args messages.RawJSON) (messages.RawJSON, error) `json:"-"`
}

// Functions returns every tool that can be used as a function, as the folder is
// now. Tools that are broken, or archived, are left out. No two have one name: of
// a-b and a.b the second is a_b_2.
func (l *Launcher) Functions(ctx context.Context) ([]Function, error) {
	entries, err := l.box.List(ctx)
	if err != nil {
		return nil, err
	}
	var list []Function
	taken := map[string]bool{}
	for _, e := range entries {
		if e.Tool == nil || e.Tool.Archived {
			continue
		}
		name := functionName(e.ID)
		for n := 2; taken[name]; n++ {
			name = functionName(e.ID) + "_" + strconv.Itoa(n)
		}
		taken[name] = true
		list = append(list, Function{
			Name: name, Tool: e.ID, Description: describe(e.Tool), Schema: e.Tool.InputSchema(), Call: l.caller(e.ID), Label: e.Tool.Name,
			Signature: toolbox.Signature(e.Tool), Arguments: toolbox.InputLines(e.Tool),
		})
	}
	return list, nil
}

func (l *Launcher) caller(id string) func(context.Context, messages.RawJSON) (messages.RawJSON, error) {
	return func(ctx context.Context, args messages.RawJSON) (messages.RawJSON, error) {
		result, err := l.Run(ctx, Request{Tool: id, Inputs: args})
		switch {
		case err != nil:
			return nil, err
		case result.Error != nil:
			return nil, result.Error
		default:
			return result.Outputs, nil
		}
	}
}

func describe(s *Spec) string {
	text := s.Name
	if s.Description != "" {
		text += ": " + s.Description
	}
	if len(s.Outputs) > 0 {
		var outputs []string
		for i := range s.Outputs {
			outputs = append(outputs, s.Outputs[i].Key+" ("+s.Outputs[i].Type+")")
		}
		text += ". Returns " + strings.Join(outputs, ", ") + "."
	}
	return text
}

// functionName makes an identifier of an id.
func functionName(id string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, id)
	if name[0] >= '0' && name[0] <= '9' {
		name = "_" + name
	}
	return name
}

// HostFunctions returns every tool that can be used as a function that code in
// cells may call (a coppice.HostFunction, for HostFunctions of its Options and of its
// Request):
//
//	tool.word_count(text="to be or not to be")
//
// A run that does not end well is raised: inputs that the tool refuses as
// ValueError, its limits as TimeoutError and MemoryError, all else as
// HostCallError with the kind of the messages.ToolError.
func (l *Launcher) HostFunctions(ctx context.Context) ([]hostcall.Function, error) {
	list, err := l.Functions(ctx)
	if err != nil {
		return nil, err
	}
	hosts := make([]hostcall.Function, 0, len(list))
	for _, f := range list {
		hosts = append(hosts, hostcall.Function{Name: f.Name, Description: f.Description, Signature: f.Signature, Help: f.Arguments, Call: func(ctx context.Context, args messages.RawJSON) (any, error) {
			outputs, err := f.Call(ctx, args)
			if told, ok := errors.AsType[*messages.ToolError](err); ok {
				return nil, &messages.HostError{Type: raised(told.Kind), Message: told.Message}
			}
			return outputs, err
		}})
	}
	return hosts, nil
}

// Offered is HostFunctions by name, for a host that looks a function up when a cell
// calls it. A nil launcher has none, nor does one whose folder cannot be read, which is
// logged.
func (l *Launcher) Offered(ctx context.Context) map[string]hostcall.Function {
	if l == nil {
		return nil
	}
	list, err := l.HostFunctions(ctx)
	if err != nil {
		l.o.Logger.Warn("list the tools for a cell", "err", err)
	}
	return hostcall.ByName(list)
}

// Lacking says why the tool that a function would be made of is none that can be used; ""
// when there is no such tool, or no launcher.
func (l *Launcher) Lacking(ctx context.Context, name string) string {
	if l == nil {
		return ""
	}
	entries, err := l.box.List(ctx)
	if err != nil {
		return err.Error()
	}
	for _, e := range entries {
		switch {
		case functionName(e.ID) != name:
		case e.Broken():
			return "the tool " + e.ID + " cannot be used: " + e.Err.Error()
		case e.Tool != nil && e.Tool.Archived:
			return "the tool " + e.ID + " is archived"
		}
	}
	return ""
}

// raised is the name of the exception for a kind of error.
func raised(kind messages.ToolErrorKind) string {
	switch kind {
	case messages.ToolErrorInput:
		return "ValueError"
	case messages.ToolErrorRuntime:
		return "TimeoutError"
	case messages.ToolErrorMemory:
		return "MemoryError"
	default:
		return string(kind)
	}
}
