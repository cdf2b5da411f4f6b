package primitive

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/coppice-run/coppice/messages"
)

// Kind says how Python takes an argument.
type Kind string

// The kinds of parameters, as Python's inspect calls them.
const (
	PositionalOnly      Kind = "positional_only"
	PositionalOrKeyword Kind = "positional_or_keyword"
	VarPositional       Kind = "var_positional"
	KeywordOnly         Kind = "keyword_only"
	VarKeyword          Kind = "var_keyword"
)

// Parameter is one parameter of a primitive.
type Parameter struct {
	// Name is that of the argument, without asterisks.
	Name string
	// Type is the name of its type for people: "str", "list[str]".
	Type        string
	Description string
	// Kind is how it is given. "": PositionalOrKeyword.
	Kind Kind
	// Optional says that it may be left out; Default is what it then is, as Python
	// writes it, for the spec.
	Optional bool
	Default  string
	// Schema is the JSON schema of its value; of *args and **kwargs, of each. nil:
	// that of Type, if that is one that JSON has.
	Schema json.RawMessage
}

// check is a compiled parameter.
type check struct {
	Parameter
	schema *jsonschema.Resolved // nil: anything goes
}

// schemas are those of the types that JSON has, by their names in Python.
var schemas = map[string]string{
	"str": `{"type":"string"}`, "int": `{"type":"integer"}`, "float": `{"type":"number"}`, "bool": `{"type":"boolean"}`,
	"dict": `{"type":"object"}`, "list": `{"type":"array"}`, "list[str]": `{"type":"array","items":{"type":"string"}}`,
	"str | None": `{"type":["string","null"]}`, "list[str] | None": `{"type":["array","null"],"items":{"type":"string"}}`,
}

// compile checks the parameters and reads their schemas.
func (e *entry) compile() error {
	order := []Kind{PositionalOnly, PositionalOrKeyword, VarPositional, KeywordOnly, VarKeyword}
	at := 0
	for _, p := range e.Parameters {
		if p.Kind == "" {
			p.Kind = PositionalOrKeyword
		}
		n := slices.Index(order, p.Kind)
		switch {
		case !segment.MatchString(p.Name):
			return fmt.Errorf("the parameter %q has no usable name", p.Name)
		case n < at:
			return fmt.Errorf("the parameter %s is %q and comes too late, or has no such kind", p.Name, p.Kind)
		case slices.ContainsFunc(e.checks, func(c *check) bool { return c.Name == p.Name }):
			return fmt.Errorf("there are two parameters %s", p.Name)
		}
		at = n
		c := &check{Parameter: p}
		raw := p.Schema
		if raw == nil {
			raw = json.RawMessage(schemas[p.Type])
		}
		if len(raw) > 0 {
			var s jsonschema.Schema
			err := json.Unmarshal(raw, &s)
			if err == nil {
				c.schema, err = s.Resolve(nil)
			}
			if err != nil {
				return fmt.Errorf("the schema of the parameter %s: %w", p.Name, err)
			}
		}
		e.checks = append(e.checks, c)
	}
	return nil
}

// bind gives arguments their names, as Python does, and checks them.
func (e *entry) bind(arguments json.RawMessage) (map[string]json.RawMessage, error) {
	var given struct {
		Args   []json.RawMessage          `json:"args"`
		Kwargs map[string]json.RawMessage `json:"kwargs"`
	}
	if len(arguments) > 0 {
		if err := json.Unmarshal(arguments, &given); err != nil {
			return nil, e.wrong("the arguments are not an object with args and kwargs")
		}
	}
	bound := map[string]json.RawMessage{}
	args := given.Args
	for _, c := range e.checks {
		name := c.Name
		value, named := given.Kwargs[name]
		switch c.Kind {
		case VarPositional:
			if err := e.each(c, args); err != nil {
				return nil, err
			}
			bound[name] = list(args)
			args = nil
			continue
		case VarKeyword:
			rest, err := e.rest(c, given.Kwargs)
			if err != nil {
				return nil, err
			}
			bound[name] = rest
			continue
		case KeywordOnly:
		default:
			if len(args) > 0 {
				if named && c.Kind != PositionalOnly {
					return nil, e.wrong("got " + name + " twice")
				}
				value, args, named = args[0], args[1:], true
			} else if c.Kind == PositionalOnly && named && !e.alone(c) {
				return nil, e.wrong(name + " is positional only")
			}
		}
		if !named {
			if !c.Optional {
				return nil, e.wrong("missing argument " + name)
			}
			continue
		}
		if err := e.conforms(c, name, value); err != nil {
			return nil, err
		}
		bound[name] = value
	}
	return bound, e.over(args, given.Kwargs)
}

// rest is what a parameter for any keywords gets: those that no other takes.
func (e *entry) rest(c *check, kwargs map[string]json.RawMessage) (json.RawMessage, error) {
	rest := map[string]json.RawMessage{}
	for k, v := range kwargs {
		if e.takes(k) {
			continue
		}
		if err := e.conforms(c, k, v); err != nil {
			return nil, err
		}
		rest[k] = v
	}
	data, _ := json.Marshal(rest) // of what was JSON
	return data, nil
}

// over refuses the arguments that no parameter takes.
func (e *entry) over(args []json.RawMessage, kwargs map[string]json.RawMessage) error {
	if len(args) > 0 {
		return e.wrong(fmt.Sprintf("%d positional arguments too many", len(args)))
	}
	if slices.ContainsFunc(e.checks, func(c *check) bool { return c.Kind == VarKeyword }) {
		return nil
	}
	for k := range kwargs {
		if !e.takes(k) {
			return e.wrong("unexpected argument " + k)
		}
	}
	return nil
}

// alone says whether c is the one required positional parameter: then its name
// may be used too.
func (e *entry) alone(c *check) bool {
	n := 0
	for _, o := range e.checks {
		if !o.Optional && (o.Kind == PositionalOnly || o.Kind == PositionalOrKeyword) {
			n++
		}
	}
	return n == 1 && !c.Optional
}

// takes says whether a parameter of that name can be given by keyword.
func (e *entry) takes(name string) bool {
	return slices.ContainsFunc(e.checks, func(c *check) bool {
		return c.Name == name && c.Kind != VarPositional && c.Kind != VarKeyword && (c.Kind != PositionalOnly || e.alone(c))
	})
}

func (e *entry) each(c *check, values []json.RawMessage) error {
	for i, v := range values {
		if err := e.conforms(c, fmt.Sprintf("%s[%d]", c.Name, i), v); err != nil {
			return err
		}
	}
	return nil
}

// conforms checks one value against its schema.
func (e *entry) conforms(c *check, name string, value json.RawMessage) error {
	if c.schema == nil {
		return nil
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(value))
	if err := d.Decode(&v); err != nil {
		return e.wrong(name + " is not JSON")
	}
	if err := c.schema.Validate(v); err != nil {
		return e.wrong(fmt.Sprintf("%s must be %s: %v", name, kindOf(c), innermost(err)))
	}
	return nil
}

func kindOf(c *check) string {
	if c.Type != "" {
		return c.Type
	}
	return "as its schema says"
}

// innermost is the last error of a chain, which names what is wrong.
func innermost(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}

// wrong is a TypeError with what the primitive takes.
func (e *entry) wrong(what string) error {
	return &messages.HostError{Type: "TypeError", Message: e.Name + "(): " + what + "\n" + e.requirements()}
}

// requirements lists the parameters in one line.
func (e *entry) requirements() string {
	if len(e.checks) == 0 {
		return "Parameter requirements: none"
	}
	parts := make([]string, 0, len(e.checks))
	for _, c := range e.checks {
		how := "required"
		if !c.required() {
			how = "optional"
		}
		text := c.shown() + "(" + kindOf(c) + ", " + how
		if c.Default != "" {
			text += ", default=" + c.Default
		}
		parts = append(parts, text+")")
	}
	return "Parameter requirements: " + strings.Join(parts, "; ")
}

func (c *check) required() bool {
	return !c.Optional && c.Kind != VarPositional && c.Kind != VarKeyword
}

// shown is the name with its asterisks.
func (c *check) shown() string {
	switch c.Kind {
	case VarPositional:
		return "*" + c.Name
	case VarKeyword:
		return "**" + c.Name
	default:
		return c.Name
	}
}

func list(values []json.RawMessage) json.RawMessage {
	if values == nil {
		values = []json.RawMessage{}
	}
	raw, _ := json.Marshal(values) // of what was JSON
	return raw
}
