package toolspec_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/toolspec"
)

const minimal = `{"id":"x","name":"X","inputs":[],"outputs":[]}`

func TestDefaults(t *testing.T) {
	t.Parallel()
	tool, err := toolspec.Parse([]byte(minimal))
	require.NoError(t, err)
	tool.Raw = nil
	require.Empty(t, cmp.Diff(&toolspec.Tool{
		ID: "x", Name: "X", Layout: "form", WarmKeepSeconds: 300, MaxMemoryMB: 512, MaxRuntimeSeconds: 60, SchemaVersion: "1.0",
		Concurrent: true, InputTransport: "json", RetainRuns: 100, Entrypoint: "main.py", Inputs: []toolspec.Input{}, Outputs: []toolspec.Output{},
	}, tool))
	tool, err = toolspec.Parse([]byte(`{"id":"x","name":"X","inputs":[{"key":"a","label":"A","type":"text"},{"key":"b","label":"B","type":"text","required":false}],"outputs":[]}`))
	require.NoError(t, err)
	require.True(t, tool.Inputs[0].Required)
	require.False(t, tool.Inputs[1].Required)
}

func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	input := func(text string) string {
		return `{"id":"x","name":"X","inputs":[` + text + `],"outputs":[]}`
	}
	for name, tc := range map[string]struct{ doc, want string }{
		"nothing":              {``, "tool.json: it is empty"},
		"no JSON":              {"{\n  \"id\": x\n}", "tool.json: it is not JSON: line 2, column 9: invalid character 'x' looking for beginning of value"},
		"cut off":              {`{"id":`, "tool.json: it is not JSON: it ends too early"},
		"two documents":        {minimal + minimal, "it is not JSON: something follows the document at byte"},
		"a list":               {`[]`, "tool.json: expected an object, found a list"},
		"missing keys":         {`{}`, "tool.json: id: the key is missing; inputs: the key is missing; name: the key is missing; outputs: the key is missing"},
		"an unknown key":       {`{"id":"x","name":"X","inputs":[],"outputs":[],"pined_warm":true}`, `pined_warm: the key is not known; did you mean "pinned_warm"?`},
		"an unknown key below": {input(`{"key":"a","label":"A","type":"text","min":3}`), "inputs[0].min: the key is not known"},
		"a secret's label":     {`{"id":"x","name":"X","inputs":[],"outputs":[],"secrets":[{"key":"K","label":"L"}]}`, "secrets[0].label: the key is not known"},
		"a wrong type":         {`{"id":"x","name":"X","inputs":[],"outputs":[],"warm_keep_seconds":"3"}`, "warm_keep_seconds: expected a whole number, found a string"},
		"a fraction":           {`{"id":"x","name":"X","inputs":[],"outputs":[],"max_memory_mb":1.5}`, "max_memory_mb: expected a whole number, found a number"},
		"out of bounds":        {`{"id":"x","name":"X","inputs":[],"outputs":[],"max_runtime_seconds":0}`, "max_runtime_seconds: 0 is not from 1 to 86400"},
		"a layout":             {`{"id":"x","name":"X","inputs":[],"outputs":[],"layout":"tabs"}`, `layout: "tabs" is not one of form, chat, split`},
		"a type of input":      {input(`{"key":"a","label":"A","type":"txt"}`), `inputs[0].type: "txt" is not a type of input; the types are audio, autocomplete, checkbox, code, `},
		"a type of output":     {`{"id":"x","name":"X","inputs":[],"outputs":[{"key":"a","label":"A","type":"txt"}]}`, `outputs[0].type: "txt" is not a type of output; the types are audio, boolean, chart_area, `},
		"no type":              {input(`{"key":"a","label":"A"}`), "inputs[0].type: the key is missing; the types of input are audio, "},
		"a slider without max": {input(`{"key":"a","label":"A","type":"slider","min":1}`), "inputs[0].max: the key is missing"},
		"an option":            {input(`{"key":"a","label":"A","type":"select","options":[[]]}`), "inputs[0].options[0]: expected a value or an object with value and label, found a list"},
		"a key twice":          {input(`{"key":"a","label":"A","type":"text"},{"key":"a","label":"B","type":"text"}`), `inputs[1].key: "a" is there twice`},
		"an id with a slash":   {`{"id":"../x","name":"X","inputs":[],"outputs":[]}`, `id: "../x" is not a name`},
		"a program elsewhere":  {`{"id":"x","name":"X","inputs":[],"outputs":[],"entrypoint":"../../bin/sh"}`, "does not lie in the tool's folder"},
		"null":                 {`{"id":null,"name":"X","inputs":[],"outputs":[]}`, "id: expected a string that is not empty, found null"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := toolspec.Parse([]byte(tc.doc))
			require.ErrorContains(t, err, tc.want)
		})
	}
}

func TestEveryTypeIsKnown(t *testing.T) {
	t.Parallel()
	inputs := "text textarea number select multiselect checkbox toggle radio date time datetime date_range file image audio colour json code markdown tags autocomplete table map_point map_bbox map_polygon map_multipoint hidden slider"
	outputs := "text markdown number boolean table kv chart_line chart_bar chart_scatter chart_area chart_pie chart_histogram chart_boxplot chart_heatmap chart_candlestick chart_radar chart_sankey chart_treemap chart_network map_points map_heatmap map_choropleth map_polygons map_route image image_grid image_compare audio video latex code diff tree timeline gantt progress log stream_text file"
	require.Len(t, strings.Fields(inputs), 28)
	require.Len(t, strings.Fields(outputs), 39)
	needs := map[string]string{"slider": `,"min":0,"max":8`, "select": `,"options":["a"]`, "multiselect": `,"options":[{"value":1,"label":"one"}]`, "radio": `,"options":[true]`, "autocomplete": `,"endpoint":"/autocomplete/x"`}
	var in, out []string
	for kind := range strings.FieldsSeq(inputs) {
		in = append(in, `{"key":"`+kind+`","label":"L","type":"`+kind+`"`+needs[kind]+`}`)
	}
	for kind := range strings.FieldsSeq(outputs) {
		out = append(out, `{"key":"`+kind+`","label":"L","type":"`+kind+`","streaming":false,"layout":"tab"}`)
	}
	tool, err := toolspec.Parse([]byte(`{"id":"x","name":"X","inputs":[` + strings.Join(in, ",") + `],"outputs":[` + strings.Join(out, ",") + `]}`))
	require.NoError(t, err)
	wrong, _ := tool.Coherent("")
	require.Empty(t, wrong)
	sample := tool.Sample()
	require.Len(t, sample, 28)
	require.Equal(t, int64(4), sample["slider"])
	require.Equal(t, "a", sample["select"])
	require.Equal(t, []any{1.0}, sample["multiselect"])
	var schema map[string]any
	require.NoError(t, json.Unmarshal(tool.InputSchema(), &schema))
	require.Len(t, schema["properties"], 27, "a hidden input cannot be given")
}

func TestCoherence(t *testing.T) {
	t.Parallel()
	tool, err := toolspec.Parse([]byte(`{"id":"My_Tool","name":"X","secrets":[{"key":"PIXIE_X"}],"inputs":[
		{"key":"n","label":"N","type":"number","min":5,"max":1,"default":9},
		{"key":"s","label":"S","type":"select","options":["a","b"],"default":"c","show_if":{"key":"none","equals":1}},
		{"key":"t","label":"T","type":"text","max_length":2,"default":"abc"},
		{"key":"c","label":"C","type":"checkbox","default":"yes"}],
		"outputs":[{"key":"o","label":"O","type":"table","default_export_format":"pdf","supported_export_formats":["csv"]}]}`))
	require.NoError(t, err)
	wrong, warnings := tool.Coherent("/tools/other")
	require.Equal(t, []string{
		"inputs[0].min: 5 is more than max, 1", "inputs[0].default: 9 is more than max, 1",
		`inputs[1].show_if.key: there is no input "none"`, `inputs[1].default: "c" is not one of the options`,
		"inputs[2].default: it has 3 characters; max_length is 2", "inputs[3].default: expected true or false, found a string",
		`outputs[0].default_export_format: "pdf" is not among supported_export_formats`, "secrets[0].key: the name PIXIE_X is reserved",
	}, toolspec.Lines(wrong, 99))
	require.Equal(t, []string{`id: "My_Tool" is not in kebab-case`, `id: "My_Tool" is not the name of the folder, "other"`}, toolspec.Lines(warnings, 99))
}

func TestDiscovery(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	list, err := toolspec.Discover(t.Context(), filepath.Join(dir, "none"))
	require.NoError(t, err)
	require.Empty(t, list)
	add := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o700))
		if text != "" {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name, "tool.json"), []byte(text), 0o600))
		}
	}
	add("b-good", strings.Replace(minimal, `"x"`, `"b-good"`, 1))
	add("a-broken", "{")
	add("c-empty", "")
	add("d-alias", strings.Replace(minimal, `"x"`, `"another"`, 1))
	add("e-twice", strings.Replace(minimal, `"x"`, `"another"`, 1))
	add(".hidden", minimal)
	add("__pycache__", "")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "README.md"), nil, 0o600))
	list, err = toolspec.Discover(t.Context(), dir)
	require.NoError(t, err)
	got := map[string]string{}
	for _, e := range list {
		got[e.ID] = ""
		if e.Err != nil {
			got[e.ID] = e.Err.Error()
		}
	}
	require.Equal(t, map[string]string{
		"b-good": "", "another": "",
		"a-broken": filepath.Join(dir, "a-broken", "tool.json") + ": it is not JSON: it ends too early",
		"c-empty":  filepath.Join(dir, "c-empty", "tool.json") + ": there is no such file; coppice tool new makes one",
		"e-twice":  filepath.Join(dir, "e-twice", "tool.json") + `: id: "another" is the id of the tool in d-alias too`,
	}, got)
	e, err := toolspec.Find(t.Context(), dir, "another")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "d-alias"), e.Dir)
	e, err = toolspec.Find(t.Context(), dir, "a-broken")
	require.NoError(t, err)
	require.Error(t, e.Err)
	_, err = toolspec.Find(t.Context(), dir, "../x")
	require.ErrorIs(t, err, toolspec.ErrNotFound)
	before := toolspec.Read(t.Context(), filepath.Join(dir, "b-good")).Stamp
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b-good", ".env"), []byte("A=1\n"), 0o600))
	require.NotEqual(t, before, toolspec.Read(t.Context(), filepath.Join(dir, "b-good")).Stamp)
}

func TestDiff(t *testing.T) {
	t.Parallel()
	a := `{"id":"x","n":1,"list":[1,{"k":"v"}],"only":null}`
	b := `{"list":[1,{"k":"w"}],"n":1.0,"id":"x","more":[]}`
	got, err := toolspec.Diff([]byte(a), []byte(b), 20)
	require.NoError(t, err)
	require.Equal(t, []string{`list[1].k: "v" in tool.json, "w" in the process`, "only: only in tool.json", "more: only in the process"}, toolspec.Lines(got, 9))
	got, err = toolspec.Diff([]byte(a), []byte(a), 20)
	require.NoError(t, err)
	require.Empty(t, got)
	got, err = toolspec.Diff([]byte(`[1,2,3]`), []byte(`[4,5,6]`), 2)
	require.NoError(t, err)
	require.Len(t, got, 2, "no more than asked for")
	got, err = toolspec.Diff([]byte(`{"a":[]}`), []byte(`{"a":{}}`), 2)
	require.NoError(t, err)
	require.Len(t, got, 1)
	_, err = toolspec.Diff([]byte(`{}`), []byte(`<html>`), 2)
	require.ErrorContains(t, err, "of the process")
	got, err = toolspec.DiffOutputs([]byte(`{"a":0.3}`), []byte(`{"a":0.30000000000000004,"b":1}`), 9)
	require.NoError(t, err)
	require.Empty(t, got)
}

func TestConform(t *testing.T) {
	t.Parallel()
	for kind, tc := range map[string]struct{ good, bad []string }{
		"text":        {[]string{`"a"`, `{"value":"a"}`}, []string{`1`, `null`, `{"value":1}`}},
		"number":      {[]string{`1.5`, `{"value":2}`}, []string{`"1"`, `[]`, `1e999`, `1.`}},
		"boolean":     {[]string{`true`}, []string{`1`}},
		"table":       {[]string{`{"columns":[],"rows":[]}`, `[{"a":1}]`}, []string{`{"rows":[]}`, `[1]`}},
		"chart_line":  {[]string{`{"x":[],"series":[]}`}, []string{`{"x":[]}`, `[]`}},
		"log":         {[]string{`{"lines":[]}`, `["a"]`}, []string{`{}`, `3`}},
		"file":        {[]string{`{"filename":"a","data":""}`}, []string{`"a"`, `{"filename":"a"}`}},
		"map_points":  {[]string{`[]`, `{}`, `3`}, nil},
		"stream_text": {[]string{`"a"`}, []string{`[]`}},
	} {
		tool, err := toolspec.Parse([]byte(`{"id":"x","name":"X","inputs":[],"outputs":[{"key":"o","label":"O","type":"` + kind + `"}]}`))
		require.NoError(t, err)
		for _, v := range tc.good {
			wrong, _ := tool.Conform(map[string]json.RawMessage{"o": json.RawMessage(v)})
			require.Empty(t, wrong, "%s %s", kind, v)
		}
		for _, v := range tc.bad {
			wrong, _ := tool.Conform(map[string]json.RawMessage{"o": json.RawMessage(v)})
			require.Len(t, wrong, 1, "%s %s", kind, v)
		}
		wrong, warnings := tool.Conform(map[string]json.RawMessage{"p": json.RawMessage(`1`)})
		require.Equal(t, []string{"o: the output is missing"}, toolspec.Lines(wrong, 9))
		require.Equal(t, []string{"p: the tool does not declare this output"}, toolspec.Lines(warnings, 9))
	}
}

func TestTheEnvFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tool, err := toolspec.Parse([]byte(`{"id":"x","name":"X","inputs":[],"outputs":[],"secrets":[{"key":"MY","required":true},{"key":"OTHER","required":true}]}`))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".env"), []byte("MY='pass word'\n# a comment\nEMPTY=\nexport API_TOKEN=tok-tok\nSHORT_SECRET=abc\nPIXIE_A=1\npath=x\n"), 0o600))
	e, err := toolspec.Environment(t.Context(), tool, dir, []string{"PATH=/bin", "SECRET=1", "broken"}, []string{"OURS=1"})
	require.NoError(t, err)
	require.Equal(t, []string{"API_TOKEN=tok-tok", "MY=pass word", "OURS=1", "PATH=/bin", "SHORT_SECRET=abc", "path=x"}, e.Vars)
	require.Equal(t, []string{"PIXIE_A"}, e.Ignored)
	require.Equal(t, []string{"OTHER"}, e.Missing)
	require.Equal(t, "*** and ***, abc", e.Mask("pass word and tok-tok, abc"), "what is short occurs in any text")
}

// FuzzParse holds that what is accepted can be used: it has an id, and all that
// is derived from it can be had.
func FuzzParse(f *testing.F) {
	f.Add(minimal)
	f.Add(`{"id":"x","name":"X","inputs":[{"key":"a","label":"A","type":"slider","min":0,"max":1,"range":true,"default":[0,1]}],"outputs":[{"key":"o","label":"O","type":"log"}]}`)
	f.Add(`{"id":"x","name":"X","inputs":[{"key":"a","label":"A","type":"select","options":[{"value":[]}]}],"outputs":[]}`)
	f.Fuzz(func(t *testing.T, doc string) {
		tool, err := toolspec.Parse([]byte(doc))
		if err != nil {
			return
		}
		if !toolspec.IsID(tool.ID) {
			t.Fatal(tool.ID)
		}
		tool.Coherent("/x")
		if !json.Valid(tool.InputSchema()) {
			t.Fatal("the schema is not JSON")
		}
		if _, err := json.Marshal(tool.Sample()); err != nil {
			t.Fatal(err)
		}
		if diff, err := toolspec.Diff(tool.Raw, tool.Raw, 9); err != nil || len(diff) > 0 {
			t.Fatal(diff, err)
		}
	})
}
