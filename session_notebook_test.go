package coppice_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/notebook"
	"github.com/coppice-run/coppice/notebook/run"
)

func cells(t testing.TB, sources ...string) *notebook.Document {
	t.Helper()
	d := notebook.New()
	for _, s := range sources {
		_, err := d.Append(notebook.NewCell{Source: s})
		require.NoError(t, err)
	}
	return d
}

// outputs is what each cell shows, for people.
func outputs(d *notebook.Document) []string {
	var all []string
	for _, c := range d.Cells() {
		var parts []string
		for _, o := range c.Outputs() {
			text, _ := o.Data.Text("text/plain")
			parts = append(parts, strings.TrimSpace(o.Text)+text+o.EName)
		}
		all = append(all, strings.Join(parts, ";"))
	}
	return all
}

// A real session and a real file: what ran is in the file, with the prompt
// numbers of the kernel.
func TestRunNotebook(t *testing.T) {
	o := options()
	o.Backend, o.Home = coppice.Runner(coppice.RunnerOptions{}), t.TempDir()
	host, err := coppice.Start(t.Context(), o)
	require.NoError(t, err)
	defer host.Shutdown(context.Background())
	path := filepath.Join(t.TempDir(), "nb.ipynb")
	file, err := notebook.NewFile(t.Context(), path, cells(t, "x = 40", "print('hello')\nx + 2", "1/0", "x"))
	require.NoError(t, err)
	session := host.Session("nb")
	report, err := session.RunNotebook(t.Context(), file.Document, run.Options{Save: file.Save})
	require.NoError(t, err)
	require.Equal(t, messages.OutcomeError, report.Outcome)
	require.Equal(t, "ZeroDivisionError", report.Cells[2].Error.Name)
	require.Equal(t, 2, report.Next)

	require.NoError(t, file.Delete(notebook.At(2)))
	report, err = session.RunNotebook(t.Context(), file.Document, run.Options{Save: file.Save, Cells: notebook.CellsFrom(2)})
	require.NoError(t, err)
	require.Equal(t, messages.OutcomeOK, report.Outcome)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	d, err := notebook.Parse(data)
	require.NoError(t, err)
	require.Equal(t, []string{"", "hello;42", "40"}, outputs(d))
	count, _ := d.Cell(2).ExecutionCount()
	require.Equal(t, 4, count)
}

// The calls of a notebook have the owner, the environment, the answers and the limit
// of time that its options say: none without one, and not that of the host.
func TestRunNotebookHandsItsOptionsOn(t *testing.T) {
	o := options()
	o.Backend, o.Home, o.Timeout = coppice.Runner(coppice.RunnerOptions{}), t.TempDir(), 100*time.Millisecond
	host, err := coppice.Start(t.Context(), o)
	require.NoError(t, err)
	defer host.Shutdown(context.Background())
	session := host.Session("nb")
	d := cells(t, "import os, time\nprint(os.environ['A'], input('name?'))\ntime.sleep(0.3)")
	report, err := session.RunNotebook(t.Context(), d, run.Options{
		Owner: "me", Env: map[string]string{"A": "b"},
		Input: func(_ context.Context, q messages.InputRequest) (string, error) { return "to " + q.Prompt, nil },
	})
	require.NoError(t, err)
	require.Equal(t, messages.OutcomeOK, report.Outcome, "%+v", report)
	require.Equal(t, []string{"b to name?"}, outputs(d))
	sessions, err := host.Sessions(t.Context())
	require.NoError(t, err)
	require.Len(t, sessions, 1)
	require.Equal(t, "me", sessions[0].Owner)

	d = cells(t, "import time\ntime.sleep(60)")
	report, err = session.RunNotebook(t.Context(), d, run.Options{Timeout: 100 * time.Millisecond})
	require.NoError(t, err)
	require.Equal(t, messages.OutcomeTimeout, report.Outcome)
	require.Contains(t, outputs(d)[0], "[coppice: timeout: ")
}
