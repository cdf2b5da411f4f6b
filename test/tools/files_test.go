//go:build linux

package tools_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/toolbox"
)

func input(key, kind string, more ...any) map[string]any {
	in := map[string]any{"key": key, "label": key, "type": kind, "required": false}
	for i := 0; i+1 < len(more); i += 2 {
		in[more[i].(string)] = more[i+1]
	}
	return in
}

// TestAToolThatTakesForms gets its inputs as multipart/form-data, files as
// files.
func TestAToolThatTakesForms(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{}, toolbox.Tool{ID: "x", Set: map[string]any{
		"input_transport": "multipart",
		"inputs": []any{
			input("do", "text", "default", "echo"), input("n", "number", "default", 3), input("picks", "multiselect", "options", []any{"a", "b"}),
			input("doc", "file"), input("more", "file", "multiple", true), input("picture", "image"),
		},
	}})
	run := func(inputs string) messages.ToolResult {
		r, err := h.Run(t.Context(), launcher.Request{Tool: "x", Inputs: []byte(inputs)})
		require.NoError(t, err)
		return r
	}
	r := run(`{"picks":["a","b"],"doc":{"filename":"a \"b\".csv","content_type":"text/csv","data":"eCx5"},
		"more":[{"filename":"1.txt","data":"MQ=="},{"filename":"2.txt","data":"data:text/plain;base64,Mg=="}],"picture":"data:image/png;base64,iVBO"}`)
	require.Equal(t, messages.OutcomeOK, r.Outcome, "%+v", r.Error)
	require.Equal(t, map[string]any{
		"fields": map[string]any{"do": "echo", "n": "3", "picks": `["a","b"]`},
		"files": map[string]any{
			"doc":     []any{[]any{`a "b".csv`, "text/csv", "x,y"}},
			"more":    []any{[]any{"1.txt", "application/octet-stream", "1"}, []any{"2.txt", "text/plain", "2"}},
			"picture": []any{[]any{"picture", "image/png", "\u0089PN"}},
		},
	}, result(t, r)["echo"])
	for inputs, says := range map[string]string{
		`{"doc":"a.csv"}`:                        "doc: the data is not base64",
		`{"doc":{"filename":"a.csv"}}`:           `doc: a file is {"filename": "a.csv", "data": "<base64>"}, or a data URL`,
		`{"doc":"data:text/plain,x"}`:            "doc: the data URL is not one in base64",
		`{"doc":{"filename":"a","data":"$$$$"}}`: "doc: the data is not base64",
		`{"doc":3}`:                              "doc: a file is",
	} {
		r := run(inputs)
		require.Equal(t, messages.OutcomeError, r.Outcome)
		require.Equal(t, messages.ToolErrorInput, r.Error.Kind)
		require.Contains(t, r.Error.Message, says)
	}
	require.Equal(t, 1, h.tool("x").Spawns)
}

// TestSuggestions come from the tool, which is started for them.
func TestSuggestions(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{}, toolbox.Tool{ID: "x", Set: map[string]any{
		"provides_autocomplete": true,
		"inputs":                []any{input("city", "autocomplete", "endpoint", "cities"), input("b", "autocomplete", "endpoint", "broken"), input("n", "autocomplete", "endpoint", "none")},
	}})
	list, err := h.Autocomplete(t.Context(), "x", "cities", "Be")
	require.NoError(t, err)
	require.JSONEq(t, `["Berlin","Bern"]`, string(list))
	require.Zero(t, h.tool("x").Runs, "it is no run")
	require.Equal(t, messages.ChildIdle, h.tool("x").State)
	for endpoint, says := range map[string]string{
		"../run": `the tool x has no input with suggestions from "../run"`, "broken": "are not JSON", "none": "the tool has no /autocomplete/none",
	} {
		_, err := h.Autocomplete(t.Context(), "x", endpoint, "")
		require.ErrorContains(t, err, says)
	}
}

// TestFilesThatRunsLeave can be opened by name, and nothing else can.
func TestFilesThatRunsLeave(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{}, toolbox.Tool{ID: "x"}, toolbox.Tool{ID: "serves", Set: map[string]any{"provides_file_endpoint": true}})
	r := h.run("x", "write", map[string]any{"files": 1, "bytes": 3})
	read := func(id, run, name string) (string, error) {
		f, err := h.OpenFile(t.Context(), id, run, name)
		if err != nil {
			return "", err
		}
		defer func() { require.NoError(t, f.Close()) }()
		data, err := io.ReadAll(f)
		require.NoError(t, err)
		return string(data), nil
	}
	text, err := read("x", r.Run, "f0.bin")
	require.NoError(t, err)
	require.Equal(t, "xxx", text)
	outside := filepath.Join(filepath.Dir(r.Artifacts), "secret")
	require.NoError(t, os.WriteFile(outside, []byte("secret"), 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(r.Artifacts, "link")))
	for _, name := range []string{"none", "../secret", "link", ".", "/etc/passwd", "", "a/../f0.bin"} {
		_, err := read("x", r.Run, name)
		require.ErrorContains(t, err, "has left no file", name)
	}
	for _, run := range []string{"other", "..", "*", "../x/" + r.Run} {
		_, err := read("x", run, "f0.bin")
		require.ErrorContains(t, err, "has left no file", run)
	}
	text, err = read("serves", "run-1", "a b/c.txt")
	require.NoError(t, err)
	require.JSONEq(t, `["run-1","a b","c.txt"]`, text)
	_, err = read("serves", "run-1", "none")
	require.ErrorContains(t, err, "the tool has no /files/run-1/none")
}

// TestRunsAreRetained as many as tool.json says, the newest ones.
func TestRunsAreRetained(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{}, toolbox.Tool{ID: "x", Set: map[string]any{"retain_runs": 2}})
	write := map[string]any{"files": 1, "bytes": 1}
	long := h.begin("long", "x", "write", map[string]any{"files": 1, "bytes": 1, "then": 60})
	h.inFlight("x", 1)
	var runs []messages.ToolResult
	for range 4 {
		runs = append(runs, h.run("x", "write", write))
	}
	for i, r := range runs {
		if i < 2 {
			require.NoDirExists(t, r.Artifacts)
		} else {
			require.FileExists(t, filepath.Join(r.Artifacts, "f0.bin"))
		}
	}
	require.NoError(t, h.Cancel(t.Context(), "long"))
	require.DirExists(t, await(t, long).Artifacts, "a run that goes on is no old one")
	require.NoDirExists(t, runs[2].Artifacts)
	marks, err := filepath.Glob(filepath.Join(filepath.Dir(runs[3].Artifacts), "*.running"))
	require.NoError(t, err)
	require.Empty(t, marks)
}

// TestAnIDThatHasLeftFiles is no id for another run: its files would be mixed up.
func TestAnIDThatHasLeftFiles(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{}, toolbox.Tool{ID: "x"})
	write := launcher.Request{Tool: "x", ID: "once", Inputs: toolbox.Inputs("write", map[string]any{"files": 1, "bytes": 1})}
	r, err := h.Run(t.Context(), write)
	require.NoError(t, err)
	require.Equal(t, messages.OutcomeOK, r.Outcome, "%+v", r.Error)
	r, err = h.Run(t.Context(), write)
	require.NoError(t, err)
	require.Equal(t, messages.ToolErrorInput, r.Error.Kind)
	require.Equal(t, "a run with the id once has left files today", r.Error.Message)
	require.Contains(t, r.Error.Hint, "an id of its own")
	for range 2 {
		r, err = h.Run(t.Context(), launcher.Request{Tool: "x", ID: "no-files", Inputs: toolbox.Inputs("echo", 1)})
		require.NoError(t, err)
		require.Equal(t, messages.OutcomeOK, r.Outcome, "an id that has left none may come again")
	}
}
