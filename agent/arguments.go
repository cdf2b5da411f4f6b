package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/coppice-run/coppice/internal/hostcall"
)

// limits are those of a tool's argument timeout, in seconds.
type limits struct{ def, least, most float64 }

// timeout is the time that a call may take: what was asked for, within limits.
func (l limits) timeout(asked *float64) (time.Duration, error) {
	s := l.def
	if asked != nil {
		s = *asked
	}
	if math.IsNaN(s) || math.IsInf(s, 0) {
		return 0, &Error{Argument: "timeout", Problem: "is not a number of seconds"}
	}
	return time.Duration(math.Max(l.least, math.Min(l.most, s)) * float64(time.Second)), nil
}

// arguments reads a call's arguments into v, strictly.
func arguments(c Call, v any) error {
	raw := c.Arguments
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil {
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			return &Error{Problem: "the arguments are more than one JSON value"}
		}
		return nil
	}
	var kind *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &kind):
		path := hostcall.PathAt(raw, kind.Offset)
		if path == "" {
			return &Error{Problem: fmt.Sprintf("the arguments are a JSON %s; they must be an object", kind.Value)}
		}
		return &Error{Argument: path, Problem: fmt.Sprintf("is a JSON %s; it must be %s", kind.Value, hostcall.JSONName(kind.Type.Kind().String()))}
	case errors.As(err, &syntax), errors.Is(err, io.ErrUnexpectedEOF):
		return &Error{Problem: "the arguments are not valid JSON: " + err.Error()}
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return &Error{Problem: "there is no argument " + name + "; see the tool's schema"}
	}
	return &Error{Problem: "the arguments cannot be read: " + err.Error()}
}

// property is one argument in a schema.
type property struct {
	name     string
	schema   map[string]any
	required bool
}

// schema is the JSON schema of an object.
func schema(properties ...property) map[string]any {
	all, required := map[string]any{}, []string{}
	for _, p := range properties {
		all[p.name] = p.schema
		if p.required {
			required = append(required, p.name)
		}
	}
	s := map[string]any{"type": "object", "properties": all, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// render is a schema as JSON. What schema makes can always be written.
func render(s map[string]any) json.RawMessage {
	b, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("write a tool's schema: %v", err))
	}
	return b
}

func text(description string) map[string]any {
	return map[string]any{"type": "string", "description": description}
}

func (l limits) property(name string) property {
	return property{name: name, schema: map[string]any{
		"type": "number", "minimum": l.least, "maximum": l.most, "default": l.def,
		"description": fmt.Sprintf("Seconds that the call may take, from %v to %v.", l.least, l.most),
	}}
}

// common adds the arguments that every tool with a session has.
func (o Options) common(properties ...property) []property {
	properties = append(properties, property{name: "cwd", schema: text("Working directory; relative to that of the session. Each directory has a state of its own.")})
	if o.SessionArgument {
		properties = append(properties, property{name: "session", schema: text("Name of the session whose state to use; that of the conversation if it is left out.")})
	}
	return properties
}
