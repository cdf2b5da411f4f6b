package toolspec_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/toolspec"
)

// TestInputsOfARun: what tool.json does not declare is refused, and told by name.
func TestInputsOfARun(t *testing.T) {
	t.Parallel()
	const some = `[
		{"key":"text","label":"Text","type":"text"},
		{"key":"n","label":"N","type":"number","default":1,"min":0,"max":9},
		{"key":"on","label":"On","type":"toggle","required":false},
		{"key":"range","label":"Range","type":"slider","min":0,"max":9,"range":true,"required":false},
		{"key":"tags","label":"Tags","type":"tags","required":false},
		{"key":"any","label":"Any","type":"json","required":false},
		{"key":"pick","label":"Pick","type":"select","options":["a","b"],"required":false},
		{"key":"doc","label":"Doc","type":"file","required":false},
		{"key":"docs","label":"Docs","type":"file","multiple":true,"required":false},
		{"key":"later","label":"Later","type":"text","show_if":{"key":"on","equals":true}},
		{"key":"inner","label":"Inner","type":"hidden"}
	]`
	const chat, forms = `"layout":"chat",`, `"input_transport":"multipart",`
	for name, tc := range map[string]struct {
		more, inputs, given string
		want                []string // none: they are as declared
	}{
		"the least":             {"", some, `{"text":"a"}`, nil},
		"all of them":           {"", some, `{"text":"a","n":12,"on":true,"range":[1,2],"tags":[],"any":{"x":1},"pick":"c","doc":{"filename":"a","data":""},"docs":[{}],"later":"b","inner":1}`, nil},
		"as data URLs":          {"", some, `{"text":"a","doc":"data:a/b;base64,eA==","docs":"data:a/b;base64,eA=="}`, nil},
		"one for a range":       {"", some, `{"text":"a","range":3}`, nil},
		"blanks":                {"", some, "{ \"text\" :\n \"a\" }", nil},
		"null, as if not given": {"", some, `{"text":"a","on":null,"doc":null}`, nil},
		"unknown":               {"", some, `{"text":"a","nope":1}`, []string{`the tool x has no input "nope"; it has text, n, on, range, tags, any, pick, doc, docs, later, inner`}},
		"unknown, of none":      {"", `[]`, `{"nope":1}`, []string{`the tool x has no input "nope"; it has none`}},
		"missing":               {"", some, `{}`, []string{`the tool x needs the input "text", a string`}},
		"null for a required":   {"", some, `{"text":null}`, []string{`the input "text" of the tool x is expected to be a string, and is null`}},
		"of other types": {"", some, `{"text":1,"n":"3","on":"yes","range":"1","tags":"a","doc":3,"docs":true}`, []string{
			`the input "doc" of the tool x is expected to be a file, {"filename": "a.csv", "data": "<base64>"} or a data URL, and is a number`,
			`the input "docs" of the tool x is expected to be a list, or a file, {"filename": "a.csv", "data": "<base64>"} or a data URL, and is true or false`,
			`the input "n" of the tool x is expected to be a number, and is a string`,
			`the input "on" of the tool x is expected to be true or false, and is a string`,
			`the input "range" of the tool x is expected to be a list, or a number, and is a string`,
			`the input "tags" of the tool x is expected to be a list, and is a string`,
			`the input "text" of the tool x is expected to be a string, and is a number`,
		}},
		"a file of a form":    {forms, some, `{"text":"a","doc":3}`, nil}, // its form says more of it
		"of a chat":           {chat, some, `{"text":"a","messages":[],"history":[]}`, nil},
		"of no chat":          {"", some, `{"text":"a","messages":[]}`, []string{`the tool x has no input "messages"; it has text, n, on, range, tags, any, pick, doc, docs, later, inner`}},
		"missing, of no form": {"", `[{"key":"any","label":"Any","type":"json"}]`, `{}`, []string{`the tool x needs the input "any", of type json`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tool, err := toolspec.Parse([]byte(`{"id":"x","name":"X",` + tc.more + `"outputs":[],"inputs":` + tc.inputs + `}`))
			require.NoError(t, err)
			var given map[string]json.RawMessage
			require.NoError(t, json.Unmarshal([]byte(tc.given), &given))
			var got []string
			for _, p := range tool.CheckInputs(given) {
				got = append(got, p.String())
			}
			require.Equal(t, tc.want, got)
		})
	}
}
