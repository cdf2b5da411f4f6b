package reference

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// operation is what an OpenAPI document says of one method of a path.
type operation struct {
	Summary, Description string
	Tags                 []string
	Parameters           []parameter
	RequestBody          *struct {
		Content map[string]struct {
			Schema schema
		}
	}
	Responses map[string]struct {
		Description string
		Ref         string `json:"$ref"`
	}
}

type parameter struct {
	Name, In, Description string
	Required              bool
	Ref                   string `json:"$ref"`
}

type schema struct {
	Ref        string `json:"$ref"`
	Type       any    // a word or a list of them
	Properties map[string]struct {
		Description string
	}
	Required []string
}

type document struct {
	Paths map[string]map[string]json.RawMessage
	Tags  []struct{ Name, Description string }
	// Components has what others refer to.
	Components struct {
		Responses map[string]struct{ Description string }
		Schemas   map[string]schema
	}
}

var methods = []string{"get", "post", "put", "patch", "delete"}

// API is the page of the HTTP API that an OpenAPI document describes.
func API(openapi []byte) ([]byte, error) {
	var d document
	if err := json.Unmarshal(openapi, &d); err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	p := newPage("HTTP API", "What `GET /api/openapi.json` of a server describes, in short. Every request has a token: `Authorization: Bearer TOKEN`. An answer that says no is `{\"error\": {\"code\", \"message\", \"hint\"}}`.")
	for _, tag := range d.Tags {
		p.heading(2, tag.Name)
		p.line(sentence(tag.Description))
		for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
			for _, method := range methods {
				raw, there := d.Paths[path][method]
				if !there {
					continue
				}
				var o operation
				if err := json.Unmarshal(raw, &o); err != nil {
					return nil, fmt.Errorf("read %s %s of the OpenAPI document: %w", method, path, err)
				}
				if slices.Contains(o.Tags, tag.Name) && o.Tags[0] == tag.Name {
					p.operation(d, strings.ToUpper(method)+" "+path, o)
				}
			}
		}
	}
	return p.text(), nil
}

func (p *page) operation(d document, name string, o operation) {
	p.heading(3, code(name))
	p.line(sentence(o.Summary))
	if o.Description != "" {
		p.line("")
		p.line(sentence(o.Description))
	}
	var rows [][]string
	for _, x := range o.Parameters {
		if x.Name == "" {
			continue
		}
		rows = append(rows, []string{code(x.Name), x.In, plain(x.Description)})
	}
	if o.RequestBody != nil {
		for _, kind := range slices.Sorted(maps.Keys(o.RequestBody.Content)) {
			s := o.RequestBody.Content[kind].Schema
			if name, found := strings.CutPrefix(s.Ref, "#/components/schemas/"); found {
				s = d.Components.Schemas[name]
			}
			if len(s.Properties) == 0 {
				rows = append(rows, []string{"", "body", code(kind)})
			}
			for _, member := range slices.Sorted(maps.Keys(s.Properties)) {
				where := "body"
				if slices.Contains(s.Required, member) {
					where += ", required"
				}
				rows = append(rows, []string{code(member), where, plain(s.Properties[member].Description)})
			}
		}
	}
	if len(rows) > 0 {
		p.line("")
		p.table([]string{"name", "in", "what it is"}, rows)
	}
	rows = nil
	for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
		r := o.Responses[status]
		if shared, found := strings.CutPrefix(r.Ref, "#/components/responses/"); found {
			r.Description = d.Components.Responses[shared].Description
		}
		rows = append(rows, []string{status, plain(r.Description)})
	}
	p.line("")
	p.table([]string{"status", "when"}, rows)
}

// sentence is a text as a sentence.
func sentence(text string) string {
	text = plain(text)
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".") + "."
}
