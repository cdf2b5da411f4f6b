package primitive

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"slices"

	"github.com/coppice-run/coppice/messages"
)

// Spec is what code can read of a primitive. Its JSON form is a dict in Python.
type Spec struct {
	XMLName       xml.Name        `json:"-"`
	Name          string          `json:"name" xml:"name"`
	Description   string          `json:"description" xml:"description"`
	InputType     string          `json:"input_type" xml:"input_type"`
	OutputType    string          `json:"output_type" xml:"output_type"`
	OutputParsing string          `json:"output_parsing" xml:"output_parsing"`
	Parameters    []SpecParameter `json:"parameters" xml:"parameters>parameter"`
	BestPractices []SpecPractice  `json:"best_practices" xml:"best_practices>best_practice"`
}

// SpecParameter is a parameter in a spec.
type SpecParameter struct {
	Name        string          `json:"name" xml:"name,attr"`
	Type        string          `json:"type" xml:"type,attr"`
	Required    bool            `json:"required" xml:"required,attr"`
	Kind        Kind            `json:"kind" xml:"kind,attr"`
	Default     string          `json:"default,omitempty" xml:"default,attr,omitempty"`
	Description string          `json:"description" xml:",chardata"`
	Schema      json.RawMessage `json:"schema,omitempty" xml:"-"`
}

// SpecPractice is a best practice in a spec; in JSON it is its text.
type SpecPractice struct {
	Index int    `xml:"index,attr"`
	Text  string `xml:",chardata"`
}

// MarshalJSON writes the text.
func (p SpecPractice) MarshalJSON() ([]byte, error) { return json.Marshal(p.Text) }

// Spec returns the spec of a primitive. False: none has that name.
func (r *Registry) Spec(name string) (Spec, bool) {
	e := r.find(name)
	if e == nil {
		return Spec{}, false
	}
	s := Spec{
		XMLName: xml.Name{Local: "primitive_spec"}, Name: e.Name, Description: e.Description, InputType: e.InputType, OutputType: e.OutputType, OutputParsing: e.OutputParsing,
		Parameters: []SpecParameter{}, BestPractices: []SpecPractice{},
	}
	for _, c := range e.checks {
		schema := c.Schema
		if schema == nil && schemas[c.Type] != "" {
			schema = json.RawMessage(schemas[c.Type])
		}
		s.Parameters = append(s.Parameters, SpecParameter{Name: c.shown(), Type: c.Type, Required: c.required(), Kind: c.Kind, Default: c.Default, Description: c.Description, Schema: schema})
	}
	for i, text := range e.BestPractices {
		s.BestPractices = append(s.BestPractices, SpecPractice{Index: i + 1, Text: text})
	}
	return s, true
}

// own are the primitives that every registry has.
func own(r *Registry) []*entry {
	prefix := Parameter{Name: "prefix", Type: "str | None", Optional: true, Default: "None", Description: "Only names that begin with it."}
	contains := Parameter{Name: "contains", Type: "str | None", Kind: KeywordOnly, Optional: true, Default: "None", Description: "Only names that contain it."}
	format := Parameter{Name: "format", Type: "str", Optional: true, Default: "'xml'", Description: "xml for a text; dict or json for a dict."}
	name := Parameter{Name: "name", Type: "str", Description: "The primitive's name.", Optional: true, Default: "''"}
	list := Primitive{
		Name: "runtime.list_primitives", Description: "Names the primitives that code can call.", OutputType: "list[str]", OutputParsing: "Sorted names.",
		Parameters: []Parameter{prefix, contains}, BestPractices: []string{"Narrow the list with prefix or contains before you read specs."},
		NextSteps: []string{"Read what a primitive takes with runtime.get_primitive_spec(name) before you call it."},
		Handler: func(_ context.Context, c *Call) (any, error) {
			var a struct{ Prefix, Contains string }
			if err := c.Bind(&a); err != nil {
				return nil, err
			}
			return r.Names(a.Prefix, a.Contains), nil
		},
	}
	contains.Kind = PositionalOrKeyword
	specs := Primitive{
		Name: "runtime.list_primitive_specs", Description: "Describes several primitives.", OutputType: "str | list[dict]", OutputParsing: "An XML text, or a list of dicts.",
		Parameters:    []Parameter{{Name: "names", Type: "list[str] | None", Optional: true, Default: "None", Description: "Which; unknown ones are left out."}, prefix, contains, format},
		BestPractices: []string{"Ask for the few that you mean to call: a spec is long."},
		Handler:       func(_ context.Context, c *Call) (any, error) { return r.listSpecs(c) },
	}
	spec := Primitive{
		Name: "runtime.get_primitive_spec", Description: "Describes one primitive: what it takes, what it returns, how to use it well.", OutputType: "str | dict",
		OutputParsing: "An XML text, or a dict.", Parameters: []Parameter{name, format},
		BestPractices: []string{"Read the spec before the first call of a primitive."},
		Handler:       func(_ context.Context, c *Call) (any, error) { return r.getSpec(c) },
	}
	backends := Primitive{
		Name: "runtime.list_backends", Description: "Names the objects of the host that primitives work on.", OutputType: "list[str]", OutputParsing: "Sorted names.",
		BestPractices: []string{"Use it to see what is installed; primitives find their backend themselves."},
		Handler:       func(context.Context, *Call) (any, error) { return r.Backends(), nil },
	}
	var entries []*entry
	for _, p := range []Primitive{list, specs, spec, backends} {
		e := &entry{Primitive: p, pack: ownPack}
		if e.compile() == nil { // they are right: tests look
			entries = append(entries, e)
		}
	}
	return entries
}

func (r *Registry) listSpecs(c *Call) (any, error) {
	var a struct {
		Names            *[]string
		Prefix, Contains string
		Format           *string
	}
	if err := c.Bind(&a); err != nil {
		return nil, err
	}
	specs := []Spec{}
	for _, name := range r.Names(a.Prefix, a.Contains) {
		if a.Names != nil && !slices.Contains(*a.Names, name) {
			continue
		}
		if s, ok := r.Spec(name); ok {
			s.XMLName.Local = "primitive"
			specs = append(specs, s)
		}
	}
	xmlWanted, err := wantsXML(a.Format)
	if err != nil || !xmlWanted {
		return specs, err
	}
	return renderXML(struct {
		XMLName xml.Name `xml:"primitive_specs"`
		Specs   []Spec
	}{Specs: specs})
}

func (r *Registry) getSpec(c *Call) (any, error) {
	var a struct {
		Name   string
		Format *string
	}
	if err := c.Bind(&a); err != nil {
		return nil, err
	}
	if a.Name == "" {
		return nil, &messages.HostError{Type: "ValueError", Message: "the name of the primitive is missing\n" + r.find(c.Name).requirements()}
	}
	s, ok := r.Spec(a.Name)
	if !ok {
		return nil, &messages.HostError{Type: "KeyError", Message: "there is no primitive " + a.Name + "; runtime.list_primitives() lists them all"}
	}
	xmlWanted, err := wantsXML(a.Format)
	if err != nil || !xmlWanted {
		return s, err
	}
	return renderXML(s)
}

func wantsXML(format *string) (bool, error) {
	if format == nil || *format == "xml" {
		return true, nil
	}
	switch *format {
	case "dict", "json", "":
		return false, nil
	default:
		return false, &messages.HostError{Type: "ValueError", Message: "the format is xml, dict or json, not " + *format}
	}
}

func renderXML(v any) (string, error) {
	text, err := xml.MarshalIndent(v, "", "  ")
	return string(text), err
}
