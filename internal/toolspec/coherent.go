package toolspec

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
)

var kebab = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// Coherent looks for what the format allows and what makes no sense: limits the
// wrong way round, a default that is not an option, a condition on an input that is
// not there. dir is the tool's folder, "" to leave its name out of it. Warnings
// are for what works and will surprise.
func (t *Tool) Coherent(dir string) (wrong, warnings []Problem) {
	var p, w problems
	if !kebab.MatchString(t.ID) {
		w.add("id", "%q is not in kebab-case", t.ID)
	}
	if base := filepath.Base(dir); dir != "" && base != t.ID {
		w.add("id", "%q is not the name of the folder, %q", t.ID, base)
	}
	if len(t.Inputs) == 0 {
		w.add("inputs", "the list is empty")
	}
	if len(t.Outputs) == 0 {
		p.add("outputs", "the list is empty: a run could not return anything")
	}
	for i := range t.Inputs {
		t.coherentInput(&p, fmt.Sprintf("inputs[%d]", i), &t.Inputs[i])
	}
	for i := range t.Outputs {
		o := &t.Outputs[i]
		if o.DefaultExportFormat != "" && len(o.SupportedExportFormats) > 0 && !slices.Contains(o.SupportedExportFormats, o.DefaultExportFormat) {
			p.add(fmt.Sprintf("outputs[%d].default_export_format", i), "%q is not among supported_export_formats", o.DefaultExportFormat)
		}
	}
	keys := map[string]bool{}
	for i, s := range t.Secrets {
		if keys[s.Key] {
			p.add(fmt.Sprintf("secrets[%d].key", i), "%q is there twice", s.Key)
		}
		keys[s.Key] = true
		if Reserved(s.Key) {
			p.add(fmt.Sprintf("secrets[%d].key", i), "the name %s is reserved", s.Key)
		}
	}
	return p.list, w.list
}

func (t *Tool) coherentInput(p *problems, path string, in *Input) {
	if in.Min != nil && in.Max != nil && *in.Min > *in.Max {
		p.add(path+".min", "%s is more than max, %s", plain(*in.Min), plain(*in.Max))
	}
	switch in.Type {
	case "select", "multiselect", "radio":
		if len(in.Options) == 0 {
			p.add(path+".options", "the list is empty: there is nothing to choose from")
		}
	}
	if in.ShowIf != nil {
		other := slices.IndexFunc(t.Inputs, func(o Input) bool { return o.Key == in.ShowIf.Key })
		switch {
		case other < 0:
			p.add(path+".show_if.key", "there is no input %q", in.ShowIf.Key)
		case in.ShowIf.Key == in.Key:
			p.add(path+".show_if.key", "an input cannot depend on itself")
		}
	}
	if len(in.Default) == 0 || string(in.Default) == "null" {
		return
	}
	var v any
	if json.Unmarshal(in.Default, &v) == nil {
		in.checkValue(p, path+".default", v)
	}
}

// checkValue says what is wrong with a value for an input, as far as the type
// says it.
func (in *Input) checkValue(p *problems, path string, v any) {
	switch in.Type {
	case "number":
		in.checkNumber(p, path, v)
	case "slider":
		if pair, ok := v.([]any); ok && in.Range {
			for i, e := range pair {
				in.checkNumber(p, fmt.Sprintf("%s[%d]", path, i), e)
			}
			return
		}
		in.checkNumber(p, path, v)
	case "select", "radio":
		in.checkOption(p, path, v)
	case "multiselect":
		list, ok := v.([]any)
		if !ok {
			p.add(path, "expected a list, found %s", typeName(v))
		}
		for i, e := range list {
			in.checkOption(p, fmt.Sprintf("%s[%d]", path, i), e)
		}
	case "checkbox", "toggle":
		boolean(p, path, v)
	case "text", "textarea", "code", "markdown", "date", "time", "datetime", "colour", "autocomplete":
		text(p, path, v)
		if s, ok := v.(string); ok && in.MaxLength != nil && len([]rune(s)) > *in.MaxLength {
			p.add(path, "it has %d characters; max_length is %d", len([]rune(s)), *in.MaxLength)
		}
	case "tags", "table":
		listOf(anything)(p, path, v)
	}
}

func (in *Input) checkNumber(p *problems, path string, v any) {
	n, ok := v.(float64)
	switch {
	case !ok:
		p.add(path, "expected a number, found %s", typeName(v))
	case in.Min != nil && n < *in.Min:
		p.add(path, "%s is less than min, %s", plain(n), plain(*in.Min))
	case in.Max != nil && n > *in.Max:
		p.add(path, "%s is more than max, %s", plain(n), plain(*in.Max))
	}
}

func (in *Input) checkOption(p *problems, path string, v any) {
	if !slices.ContainsFunc(in.Options, func(o Option) bool { return reflect.DeepEqual(o.Value, v) }) {
		p.add(path, "%s is not one of the options", shown(v))
	}
}
