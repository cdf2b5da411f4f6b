package toolspec

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// MustBeGiven reports whether a run has to be given the input: it has no default, and is
// shown whatever the others are.
func (in *Input) MustBeGiven() bool {
	return in.Required && len(in.Default) == 0 && in.ShowIf == nil && in.Type != "hidden"
}

// CheckInputs compares the inputs of a run with those that the tool declares, before
// their defaults are filled in: an input that it does not declare is wrong, and so are
// one that is missing and one of another type. Bounds and options are the tool's to
// judge, which says more of them than tool.json does; so are the values of types that
// have no one form.
func (t *Tool) CheckInputs(given map[string]json.RawMessage) []Problem {
	var p problems
	var unknown []string
	for _, key := range sortedKeys(given) {
		if in := t.Input(key); in != nil {
			t.checkInput(&p, in, given[key])
		} else if !t.chats(key) {
			unknown = append(unknown, strconv.Quote(key))
		}
	}
	if len(unknown) > 0 {
		p.add("", "the tool %s has no input %s; %s", t.ID, strings.Join(unknown, ", "), t.inputKeys())
	}
	for i := range t.Inputs {
		in := &t.Inputs[i]
		if _, there := given[in.Key]; !there && in.MustBeGiven() {
			p.add("", "the tool %s needs the input %q, %s", t.ID, in.Key, in.form(t))
		}
	}
	return p.list
}

// chats says that a tool with the chat layout is given an input whether it declares it
// or not.
func (t *Tool) chats(key string) bool {
	return t.Layout == "chat" && (key == "messages" || key == "history")
}

// inputKeys says which inputs there are.
func (t *Tool) inputKeys() string {
	if len(t.Inputs) == 0 {
		return "it has none"
	}
	keys := make([]string, 0, len(t.Inputs))
	for i := range t.Inputs {
		keys = append(keys, t.Inputs[i].Key)
	}
	return "it has " + strings.Join(keys, ", ")
}

func (t *Tool) checkInput(p *problems, in *Input, given json.RawMessage) {
	v := shaped{raw: bytes.TrimLeft(given, blanks)}
	if len(v.raw) == 0 || v.is() == "null" && !in.Required {
		return // many callers write null for what they leave out
	}
	forms := in.forms(t)
	if len(forms) == 0 || fits(forms, &v) {
		return
	}
	p.add("", "the input %q of the tool %s is expected to be %s, and is %s", in.Key, t.ID, says(forms), v.is())
}

// form says in words what an input is.
func (in *Input) form(t *Tool) string {
	if forms := in.forms(t); len(forms) > 0 {
		return says(forms)
	}
	return "of type " + in.Type
}

// forms are those that a value of the input may have; none: it may have any.
func (in *Input) forms(t *Tool) []shape {
	switch in.Type {
	case "number":
		return []shape{isNumber}
	case "slider":
		if in.Range {
			return []shape{isList, isNumber}
		}
		return []shape{isNumber}
	case "checkbox", "toggle":
		return []shape{isBool}
	case "text", "textarea", "code", "markdown", "date", "time", "datetime", "colour", "autocomplete":
		return []shape{isText}
	case "multiselect", "tags", "table":
		return []shape{isList}
	case "file", "image", "audio":
		if t.InputTransport == "multipart" {
			return nil // they are read, and refused, where the form is made
		}
		if in.Multiple {
			return []shape{isList, isFile}
		}
		return []shape{isFile}
	default:
		return nil
	}
}

// isFile leaves what is in it to whoever reads it.
var isFile = shape{`a file, {"filename": "a.csv", "data": "<base64>"} or a data URL`, func(v *shaped) bool { return v.raw[0] == '{' || v.raw[0] == '"' }}

func says(forms []shape) string {
	text := make([]string, 0, len(forms))
	for _, f := range forms {
		text = append(text, f.says)
	}
	return strings.Join(text, ", or ")
}

func fits(forms []shape, v *shaped) bool {
	for _, f := range forms {
		if f.ok(v) {
			return true
		}
	}
	return false
}
