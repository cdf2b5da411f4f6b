package toolspec

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Conform compares what a run returned with what the tool declares. Outputs
// that are missing or of another shape are wrong; further keys are worth a
// warning.
func (t *Tool) Conform(outputs map[string]json.RawMessage) (wrong, warnings []Problem) {
	var p, w problems
	for i := range t.Outputs {
		o := &t.Outputs[i]
		given, there := outputs[o.Key]
		if !there {
			p.add(o.Key, "the output is missing")
			continue
		}
		if err := valid(given); err != nil {
			p.add(o.Key, "it is not JSON: %v", err)
			continue
		}
		v := shaped{raw: bytes.TrimLeft(given, blanks)}
		if v.tooLarge() {
			p.add(o.Key, "the number %.40s is too large", v.raw)
			continue
		}
		o.conform(&p, &v)
	}
	for _, key := range sortedKeys(outputs) {
		if t.Output(key) == nil {
			w.add(key, "the tool does not declare this output")
		}
	}
	return p.list, w.list
}

// shapes says for each type of output what its value is: one of the forms.
var shapes = map[string][]shape{
	"text": {isText}, "markdown": {isText}, "latex": {isText}, "code": {isText}, "stream_text": {isText},
	"number": {isNumber}, "boolean": {isBool}, "progress": {isNumber, has("value"), has("current")},
	"table":      {has("columns", "rows"), isRows},
	"kv":         {isObject, isRows},
	"chart_line": {has("x", "series")}, "chart_bar": {has("x", "series")}, "chart_area": {has("x", "series")},
	"chart_scatter": {has("series"), has("points"), has("x", "y")}, "chart_pie": {has("labels", "values"), has("slices")},
	"chart_histogram": {has("values"), has("bins")}, "chart_heatmap": {has("z"), has("values")},
	"log":  {has("lines"), isList, isText},
	"file": {has("filename", "data"), has("filename", "path"), has("filename", "url")},
	"diff": {has("before", "after"), has("old", "new"), isText},
	"tree": {isObject, isList}, "timeline": {isList, isObject}, "gantt": {isList, isObject},
	"image": {isText, isObject}, "audio": {isText, isObject}, "video": {isText, isObject},
	"image_grid": {isList, isObject}, "image_compare": {isObject},
}

// shaped is a value whose shape is looked at. It is not decoded, for it may be large.
type shaped struct {
	raw

	keys map[string]json.RawMessage // of an object, once they were asked for
}

func (v *shaped) object() (map[string]json.RawMessage, bool) {
	if v.keys == nil {
		v.keys, _ = v.members()
	}
	return v.keys, v.keys != nil
}

// shape is one form that a value may have.
type shape struct {
	says string
	ok   func(v *shaped) bool
}

var (
	isText   = being("a string")
	isNumber = being("a number")
	isBool   = being("true or false")
	isList   = being("a list")
	isObject = being("an object")
	isRows   = shape{"a list of objects", func(v *shaped) bool {
		if v.raw[0] != '[' {
			return false
		}
		for e := range v.elements() {
			if e[0] != '{' {
				return false
			}
		}
		return true
	}}
)

// being is a shape that is all that is said of the value.
func being(says string) shape {
	return shape{says, func(v *shaped) bool { return v.is() == says }}
}

func has(keys ...string) shape {
	says := "an object with "
	for i, k := range keys {
		if i > 0 {
			says += " and "
		}
		says += k
	}
	return shape{says, func(v *shaped) bool {
		m, ok := v.object()
		for _, k := range keys {
			if _, there := m[k]; !there {
				return false
			}
		}
		return ok
	}}
}

func (o *Output) conform(p *problems, v *shaped) {
	forms, known := shapes[o.Type]
	if !known {
		return // any shape goes for maps and the rarer charts
	}
	// A scalar may be wrapped: {"value": 3}.
	if m, ok := v.object(); ok && len(m) <= 2 {
		if inner, wrapped := m["value"]; wrapped && fits(forms, &shaped{raw: raw(inner)}) {
			return
		}
	}
	if !fits(forms, v) {
		p.add(o.Key, "%s of type %s is expected to be %s, and is %s", "an output", o.Type, says(forms), v.is())
	}
}

// Lines writes problems one a line, at most limit of them.
func Lines(list []Problem, limit int) []string {
	lines := make([]string, 0, min(len(list), limit+1))
	for i, p := range list {
		if i == limit {
			return append(lines, fmt.Sprintf("and %d more", len(list)-limit))
		}
		lines = append(lines, p.String())
	}
	return lines
}
