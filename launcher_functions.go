package coppice

import (
	"context"
	"encoding/json"
	"strings"

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
}

// Functions returns every tool that can be used as a function, as the folder is
// now. Tools that are broken, or archived, are left out.
func (t *Launcher) Functions(ctx context.Context) ([]ToolFunction, error) {
	entries, err := t.catalogue.List(ctx)
	if err != nil {
		return nil, err
	}
	var list []ToolFunction
	for _, e := range entries {
		if e.Tool == nil || e.Tool.Archived {
			continue
		}
		list = append(list, ToolFunction{
			Name: functionName(e.ID), Tool: e.ID, Description: describe(e.Tool), Schema: e.Tool.InputSchema(), Call: t.caller(e.ID),
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
