//go:build linux

package integration_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/agent"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/notebook"
)

// TestTheNotebookTools make a notebook, run it on a real kernel, mend a cell and go
// on; the variables are there for the tool python.
func TestTheNotebookTools(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, backend string) {
		host, dir := on(t, backend), t.TempDir()
		o := agent.Options{Notebooks: true, SessionArgument: true}
		use := func(name, args string) agent.Result {
			t.Helper()
			r, err := tool(t, host, o, name).Call(t.Context(), agent.Call{Arguments: json.RawMessage(args), Session: messages.SessionKey{Session: "nb", Cwd: dir}})
			require.NoError(t, err)
			return r
		}
		r := use("notebook_edit", `{"path":"a.ipynb","edits":[
			{"action":"insert","source":"# Prices","type":"markdown"},
			{"action":"insert","source":"n = 40\nprint('n is', n)"},
			{"action":"insert","source":"m = n + two"},
			{"action":"insert","source":"m"}]}`)
		require.Contains(t, r.Text, "Inserted a markdown cell at 0.\nInserted a code cell at 1.")
		require.Contains(t, r.Text, "The notebook now has 4 cells.")

		r = use("notebook_run", `{"path":"a.ipynb"}`)
		require.True(t, r.IsError)
		require.Contains(t, r.Text, "[cell:1] ok\nn is 40\n")
		require.Contains(t, r.Text, "NameError")
		require.Contains(t, r.Text, `Ran 2 of 3 cells; cell 2 ended the run. Mend it and go on with cells: "2-".`)
		require.Equal(t, messages.OutcomeError, r.Result.Outcome)
		require.Equal(t, 2, r.Result.Cells[1].Index, "cells are those of the notebook")

		require.Contains(t, use("notebook_edit", `{"path":"a.ipynb","edits":[{"action":"replace","cell":2,"source":"m = n + 2"}]}`).Text, "Replaced cell 2 (code).")
		r = use("notebook_run", `{"path":"a.ipynb","cells":"2-"}`)
		require.False(t, r.IsError, r.Text)
		require.Contains(t, r.Text, "[cell:3] ok\n42\n")
		require.Equal(t, "42", use("python", `{"cells":[{"code":"m"}]}`).Text)

		text := use("notebook_read", `{"path":"a.ipynb","outputs":true}`).Text
		require.Equal(t, "# %% [markdown] cell:0\n# Prices\n# %% [code] cell:1\nn = 40\nprint('n is', n)\n#> n is 40\n# %% [code] cell:2\nm = n + 2\n# %% [code] cell:3\nm\n#> 42", text)
		require.Equal(t, "# %% [code] cell:3\nm", use("notebook_read", `{"path":"a.ipynb","cells":"3"}`).Text)

		require.False(t, use("notebook_run", `{"path":"a.ipynb","reset":true,"parameters":{"two":2}}`).IsError)
		require.Equal(t, "2", use("python", `{"cells":[{"code":"two"}]}`).Text)
		file, err := notebook.Open(t.Context(), filepath.Join(dir, "a.ipynb"))
		require.NoError(t, err)
		require.Empty(t, file.Validate())
	})
}

// TestNotebookToolsSayWhatIsWrong: nothing is run or written then.
func TestNotebookToolsSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	host, dir := start(t, coppice.Options{Backend: coppice.Runner(coppice.RunnerOptions{})}), t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("bad.ipynb", "{")
	write("r.ipynb", `{"cells":[{"cell_type":"code","metadata":{},"source":[],"outputs":[],"execution_count":null}],"metadata":{"kernelspec":{"name":"ir","display_name":"R","language":"R"}},"nbformat":4,"nbformat_minor":4}`)
	const good = `{"cells":[{"cell_type":"code","metadata":{},"source":["1"],"outputs":[],"execution_count":null}],"metadata":{},"nbformat":4,"nbformat_minor":4}`
	write("one.ipynb", good)
	o := agent.Options{Notebooks: true}
	for _, row := range [][4]string{
		{"notebook_read", `{}`, "path", "is missing"},
		{"notebook_read", `{"path":"a.txt"}`, "path", "must end in .ipynb"},
		{"notebook_read", `{"path":"none.ipynb"}`, "path", "none.ipynb"},
		{"notebook_read", `{"path":"bad.ipynb"}`, "path", "Invalid JSON"},
		{"notebook_read", `{"path":"one.ipynb","cells":"4-"}`, "cells", "4"},
		{"notebook_read", `{"path":"one.ipynb","cells":"x"}`, "cells", "x"},
		{"notebook_read", `{"path":"one.ipynb","page":1}`, "", `no argument "page"`},
		{"notebook_edit", `{"path":"one.ipynb"}`, "edits", "is missing"},
		{"notebook_edit", `{"path":"one.ipynb","text":"x","edits":[{"action":"delete","cell":0}]}`, "text", "one of them"},
		{"notebook_edit", `{"path":"one.ipynb","text":"no marker"}`, "text", "first line"},
		{"notebook_edit", `{"path":"one.ipynb","text":""}`, "text", "would delete all 1 cells"},
		{"notebook_edit", `{"path":"one.ipynb","edits":[{"action":"insert","source":"2"},{"action":"replace","cell":1,"source":""}]}`, "edits[1].cell", "there is no cell 1: the notebook has 1 cells"},
		{"notebook_edit", `{"path":"one.ipynb","edits":[{"action":"delete","cell":0},{"action":"replace","cell":0,"source":""}]}`, "edits[1].cell", "was deleted by an edit above"},
		{"notebook_edit", `{"path":"one.ipynb","edits":[{"action":"replace","cell":0}]}`, "edits[0].source", "is missing"},
		{"notebook_edit", `{"path":"one.ipynb","edits":[{"action":"move","cell":0}]}`, "edits[0].action", "not one of replace, insert, delete"},
		{"notebook_edit", `{"path":"one.ipynb","edits":[{"action":"insert","source":"","type":"sql"}]}`, "edits[0].type", "not one of code, markdown, raw"},
		{"notebook_run", `{"path":"r.ipynb"}`, "path", "not a Python notebook"},
		{"notebook_run", `{"path":"one.ipynb","parameters":{"not a name":1}}`, "parameters", "not a name"},
		{"notebook_run", `{"path":"one.ipynb","timeout":"long"}`, "timeout", "must be a number"},
	} {
		_, err := tool(t, host, o, row[0]).Call(t.Context(), agent.Call{Arguments: json.RawMessage(row[1]), Session: messages.SessionKey{Session: "nb", Cwd: dir}})
		var bad *agent.Error
		require.ErrorAs(t, err, &bad, "%s %s", row[0], row[1])
		require.Equal(t, row[2], bad.Argument, "%s %s: %v", row[0], row[1], err)
		require.Contains(t, bad.Error(), row[3], "%s %s", row[0], row[1])
	}
	b, err := os.ReadFile(filepath.Join(dir, "one.ipynb"))
	require.NoError(t, err)
	require.Equal(t, good, string(b), "an edit that cannot be made changes nothing")
}

// TestALongNotebookIsReadInParts, none of which is left out.
func TestALongNotebookIsReadInParts(t *testing.T) {
	t.Parallel()
	host, path := start(t, coppice.Options{Backend: coppice.Runner(coppice.RunnerOptions{})}), filepath.Join(t.TempDir(), "long.ipynb")
	file, err := notebook.OpenOrNew(t.Context(), path)
	require.NoError(t, err)
	for range 8 {
		_, err := file.Append(notebook.NewCell{Source: strings.Repeat("x = 1\n", 3000)})
		require.NoError(t, err)
	}
	_, err = file.Save(t.Context())
	require.NoError(t, err)
	read := tool(t, host, agent.Options{Notebooks: true}, "notebook_read")
	first := call(t, read, `{"path":"`+path+`"}`).Text
	require.Less(t, len(first), 60<<10)
	require.Contains(t, first, `[cut in cell 2 of 8: cells "2-" reads on]`)
	require.Contains(t, call(t, read, `{"path":"`+path+`","cells":"2-"}`).Text, "# %% [code] cell:3")
}
