package coppice

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/coppice-run/coppice/internal/hostcall"
	"github.com/coppice-run/coppice/messages"
)

// ToolFunction is a tool in the form in which it is offered to a model, or to
// the Python of a session: a function with a name, a schema and a way to call
// it. Any goroutine may call it.
type ToolFunction struct {
	// Name is the tool's id as an identifier: word_count.
	Name string `json:"name"`
	// Tool is the tool's id.
	Tool        string `json:"tool"`
	Description string `json:"description"`
	// Schema describes the arguments as a JSON Schema (draft 2020-12) of type
	// object.
	Schema json.RawMessage `json:"schema"`
	// Call makes a run with arguments that are a JSON object, and returns the
	// outputs as a JSON object. The error is a *messages.ToolError when the run
	// did not end well, or ErrClosed. The end of ctx cancels the run.
	Call func(ctx context.Context, args json.RawMessage) (json.RawMessage, error) `json:"-"`

	label string // for people
}

// Functions returns every tool that can be used as a function, as the folder is
// now. Tools that are broken, or archived, are left out. No two have one name: of
// a-b and a.b the second is a_b_2.
func (t *Launcher) Functions(ctx context.Context) ([]ToolFunction, error) {
	entries, err := t.catalogue.List(ctx)
	if err != nil {
		return nil, err
	}
	var list []ToolFunction
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
		list = append(list, ToolFunction{
			Name: name, Tool: e.ID, Description: describe(e.Tool), Schema: e.Tool.InputSchema(), Call: t.caller(e.ID), label: e.Tool.Name,
		})
	}
	return list, nil
}

func (t *Launcher) caller(id string) func(context.Context, json.RawMessage) (json.RawMessage, error) {
	return func(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
		result, err := t.Run(ctx, ToolRequest{Tool: id, Inputs: args})
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

func describe(s *ToolSpec) string {
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

var _ error = (*messages.ToolError)(nil)

// HostFunctions returns every tool that can be used as a function that code in
// cells may call (Options.HostFunctions, Request.HostFunctions):
//
//	tool.word_count(text="to be or not to be")
//
// A run that does not end well is raised: inputs that the tool refuses as
// ValueError, its limits as TimeoutError and MemoryError, all else as
// HostCallError with the kind of the messages.ToolError.
func (t *Launcher) HostFunctions(ctx context.Context) ([]HostFunction, error) {
	list, err := t.Functions(ctx)
	if err != nil {
		return nil, err
	}
	hosts := make([]HostFunction, 0, len(list))
	for _, f := range list {
		hosts = append(hosts, HostFunction{Name: f.Name, Description: f.Description, Call: func(ctx context.Context, args json.RawMessage) (any, error) {
			outputs, err := f.Call(ctx, args)
			if told, ok := errors.AsType[*messages.ToolError](err); ok {
				return nil, &messages.HostError{Type: raised(told.Kind), Message: told.Message}
			}
			return outputs, err
		}})
	}
	return hosts, nil
}

// offered are the tools of the folder as it is now, as functions for code in
// cells, by name; none without a launcher, or when the folder cannot be read.
func (t *Launcher) offered(ctx context.Context) map[string]HostFunction {
	if t == nil {
		return nil
	}
	list, err := t.HostFunctions(ctx)
	if err != nil {
		t.o.Logger.Warn("list the tools for a cell", "err", err)
	}
	return hostcall.ByName(list)
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
