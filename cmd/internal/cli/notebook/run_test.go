package notebook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/notebook"
	"github.com/coppice-run/coppice/notebook/run"
)

// TestRunFlags: what is wrong is said before anything starts.
func TestRunFlags(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args []string
		code int
		want string
	}{
		"a timeout":        {[]string{"--timeout", "x"}, 2, "--timeout must be a number of seconds up to 604800"},
		"a timeout of 0":   {[]string{"--timeout", "0"}, 2, "--timeout must be"},
		"too long":         {[]string{"--timeout", "604801"}, 2, "--timeout must be"},
		"no cell":          {[]string{"--from", "-2"}, 2, "--from must be the index of a cell"},
		"no cells":         {[]string{"--cells", "x"}, 2, "x"},
		"cells past it":    {[]string{"--cells", "7"}, 2, "7"},
		"no parameter":     {[]string{"-p", "x"}, 2, "--param must be NAME=VALUE"},
		"over itself":      {[]string{"-o", "DIR/a.ipynb"}, 2, "say --in-place to write it"},
		"to two":           {[]string{"-o", "x.ipynb", "--in-place"}, 2, "none of the others can be"},
		"watched, as JSON": {[]string{"--watch", "--json"}, 2, "none of the others can be"},
		"another's output": {[]string{"--from", "1", "-o", "DIR/b.ipynb"}, 2, "DIR/b.ipynb holds other cells than DIR/a.ipynb"},
		"no folder":        {[]string{"-o", "DIR/none/o.ipynb"}, 2, "no file can be made in the folder DIR/none: "},
		"not a file":       {[]string{"-o", "DIR"}, 2, "nothing was run"},
		"no backend":       {[]string{"--backend", "x"}, 2, "not one of"},
	} {
		e := command(t, Command, "", append([]string{"run", "DIR/a.ipynb"}, tc.args...)...)
		require.Equal(t, tc.code, e.code, "%s: %s", name, e.err)
		require.Contains(t, e.err, tc.want, name)
	}
	for name, text := range map[string]string{"no file": "none", "broken": "broken", "empty": "empty", "of another version": "five"} {
		e := command(t, Command, "", "cells", "DIR/a.ipynb")
		require.NoError(t, os.WriteFile(filepath.Join(e.dir, "empty.ipynb"), nil, 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(e.dir, "five.ipynb"), []byte(strings.Replace(book, `"nbformat": 4`, `"nbformat": 5`, 1)), 0o600))
		e = in(t, e.dir, Command, "", "run", "DIR/"+text+".ipynb")
		require.Equal(t, 2, e.code, name)
		require.Contains(t, e.err, text+".ipynb", name)
	}
	for text, want := range map[string]any{"x=1": "1", "x = [1]": " [1]", "x=True": true, "x=False": false, "x=None": "null", "x=word": `"word"`, "x=a=b": `"a=b"`} {
		p, err := parseParameter(text)
		require.NoError(t, err)
		require.Equal(t, "x", p.Name)
		if raw, ok := p.Value.(interface{ MarshalJSON() ([]byte, error) }); ok {
			data, err := raw.MarshalJSON()
			require.NoError(t, err)
			require.Equal(t, want, string(data), text)
			continue
		}
		require.Equal(t, want, p.Value, text)
	}
}

// TestHowARunEnds: the exit code is that of the outcome, unless the command line or the
// file is wrong.
func TestHowARunEnds(t *testing.T) {
	t.Parallel()
	ok := run.Report{Outcome: messages.OutcomeOK}
	require.NoError(t, runError(ok, nil))
	exit, is := errors.AsType[*console.Exit](runError(run.Report{Outcome: messages.OutcomeTimeout}, nil))
	require.True(t, is)
	require.Equal(t, console.Timeout, exit.Code)
	_, is = errors.AsType[console.UsageError](runError(ok, &coppice.RequestError{}))
	require.True(t, is)
	err := failure(runError(ok, notebook.ErrChanged))
	require.ErrorContains(t, err, "what the last cell showed was not written")
	require.NotContains(t, err.Error(), "try again")
	exit, is = errors.AsType[*console.Exit](err)
	require.True(t, is)
	require.Equal(t, console.Usage, exit.Code)
	exit, is = errors.AsType[*console.Exit](failure(runError(ok, fmt.Errorf("save the notebook: %w", unsavedError{fs.ErrPermission}))))
	require.True(t, is)
	require.Equal(t, console.Usage, exit.Code, "1 says that a cell raised")
	require.ErrorIs(t, exit, fs.ErrPermission)
	require.ErrorIs(t, runError(ok, context.Canceled), context.Canceled)
}

// open reads the notebook of a text.
func open(t *testing.T, text string) *notebook.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.ipynb")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	f, err := notebook.Open(t.Context(), path)
	require.NoError(t, err)
	return f
}

// TestTheView tells of each cell, and how to go on.
func TestTheView(t *testing.T) {
	t.Parallel()
	f := open(t, book)
	raised := &messages.ErrorDetails{Name: "NameError", Message: "no y", Traceback: []string{"NameError: no y"}}
	cells := []run.Cell{
		{Index: 1, Outcome: messages.OutcomeOK, Duration: 12 * time.Millisecond},
		{Index: 2, Outcome: messages.OutcomeError, Duration: 3 * time.Millisecond, Error: raised},
	}
	draw := func(flags runFlags, expected bool) string {
		var stdout bytes.Buffer
		v := newView(&app{console.New(strings.NewReader(""), &stdout, &bytes.Buffer{}, nil)}, flags, nil)
		v.step(run.Step{Kind: run.Planned, Plan: []*notebook.Cell{f.Cell(1), f.Cell(2)}, Index: []int{1, 2}})
		for i, c := range cells {
			c.Expected = expected && c.Error != nil
			v.step(run.Step{Kind: run.CellBegins, Place: i, Cell: c.Index})
			v.step(run.Step{Kind: run.CellEvent, Place: i, Cell: c.Index, Event: messages.Stream{Name: messages.StdoutStream, Text: "printed\n"}})
			v.step(run.Step{Kind: run.CellEnded, Place: i, Cell: c.Index, Ended: c})
		}
		return stdout.String()
	}
	require.Equal(t, "✓ [1/2] cell 1  x = 40 (12 ms)\n✗ [2/2] cell 2  y = x (3 ms)\n    NameError: no y\n", draw(runFlags{}, false))
	require.Contains(t, draw(runFlags{}, true), "! [2/2] cell 2  y = x (3 ms)\n    NameError: no y\n")
	require.Contains(t, draw(runFlags{outputs: true}, false), "printed\n")
	require.Empty(t, draw(runFlags{json: true}, false))

	flagged := runFlags{}
	cmd := (&app{console.New(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}, nil)}).runCommand()
	require.NoError(t, cmd.ParseFlags([]string{"--python", "/opt/my python", "--backend", "runner", "--from", "1", "--outputs", "--param", "x=1", "--pass-env", "A,B", "--pass-env", "C"}))
	flagged.again = given(cmd.Flags())
	for name, tc := range map[string]struct {
		flags  runFlags
		report run.Report
		want   []string
	}{
		"with flags":    {flagged, run.Report{Outcome: messages.OutcomeError, Cells: cells, Next: 2}, []string{"go on with: coppice notebook run a.ipynb --backend runner --outputs --pass-env A,B,C --python '/opt/my python' --from 2\n"}},
		"for a shell":   {runFlags{output: "my o.ipynb"}, run.Report{Outcome: messages.OutcomeError, Cells: cells, Next: 2}, []string{"go on with: coppice notebook run a.ipynb --output 'my o.ipynb' --from 2\n"}},
		"all is well":   {runFlags{}, run.Report{Outcome: messages.OutcomeOK, Cells: cells[:1], Next: -1, Duration: time.Second}, []string{"✓ 1 cell: 1 ok in 1 s; outputs are in OUT\n"}},
		"it failed":     {runFlags{}, run.Report{Outcome: messages.OutcomeError, Cells: cells, Next: 2}, []string{"✗ 2 cells: 1 ok, 1 failed", "go on with: coppice notebook run a.ipynb --from 2\n", "as in --cells 1,2-\n"}},
		"from there":    {runFlags{inPlace: true, from: 2}, run.Report{Outcome: messages.OutcomeError, Cells: cells[1:], Next: 2}, []string{"a.ipynb --in-place --cells 0,2-\n"}},
		"in place":      {runFlags{inPlace: true}, run.Report{Outcome: messages.OutcomeLost, Reason: "killed", Cells: cells[1:], Next: 2}, []string{"  killed\n", "a.ipynb --in-place --from 2\n"}},
		"to a file":     {runFlags{output: "o.ipynb"}, run.Report{Outcome: messages.OutcomeTimeout, Cells: []run.Cell{{Index: 1, Outcome: messages.OutcomeTimeout}, {Index: 2, Outcome: messages.OutcomeNotStarted}}, Next: 1}, []string{"· [2/2] cell 2  y = x\n", "1 timed out, 1 not run", "--output o.ipynb --from 1\n"}},
		"it was wanted": {runFlags{}, run.Report{Outcome: messages.OutcomeOK, Next: -1, Cells: []run.Cell{{Index: 2, Outcome: messages.OutcomeError, Expected: true}}}, []string{"✓ 1 cell: 1 raised"}},
	} {
		var stdout bytes.Buffer
		v := newView(&app{console.New(strings.NewReader(""), &stdout, &bytes.Buffer{}, nil)}, tc.flags, nil)
		v.titles = []string{"x = 40", "y = x"}
		v.summary(tc.report, "a.ipynb", "OUT")
		for _, want := range tc.want {
			require.Contains(t, stdout.String(), want, name)
		}
	}
}

// TestWhatChanged: a watched notebook is run from the first code cell that differs on.
func TestWhatChanged(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(string) string
		from   int
		ok     bool
	}{
		"nothing":    {func(s string) string { return s }, -1, true},
		"words":      {func(s string) string { return strings.Replace(s, "# Prices", "# Costs", 1) }, -1, true},
		"the last":   {func(s string) string { return strings.Replace(s, "y = x", "y = 2", 1) }, 2, true},
		"the first":  {func(s string) string { return strings.Replace(s, "x = 40", "x = 41", 1) }, 1, true},
		"broken now": {func(string) string { return "{" }, 0, false},
		"gone":       {nil, 0, false},
	} {
		f := open(t, book)
		var stderr bytes.Buffer
		r := &runner{app: &app{console.New(strings.NewReader(""), &bytes.Buffer{}, &stderr, nil)}, flags: runFlags{inPlace: true}, path: f.Path, file: f}
		ran := sourcesOf(f.Document, -1)
		require.Equal(t, []string{"x = 40\nprint(x + 2)", "y = x"}, ran)
		if tc.change == nil {
			require.NoError(t, os.Remove(f.Path))
			require.Nil(t, r.content(t.Context()))
		} else {
			require.NoError(t, os.WriteFile(f.Path, []byte(tc.change(book)), 0o600))
			require.Equal(t, tc.change(book), string(r.content(t.Context())))
		}
		from, ok := r.reload(t.Context(), ran)
		require.Equal(t, tc.ok, ok, name)
		require.Equal(t, tc.from, from, name)
		require.Equal(t, tc.ok, stderr.Len() == 0, name)
	}
	require.Equal(t, []string{"x = 40\nprint(x + 2)"}, sourcesOf(open(t, book).Document, 2), "up to the one that did not complete")

	// Elsewhere than in place, what the cells before it showed is carried over.
	f := open(t, book)
	out, err := notebook.NewFile(t.Context(), filepath.Join(t.TempDir(), "out.ipynb"), f.Document)
	require.NoError(t, err)
	r := &runner{app: &app{console.New(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}, nil)}, path: f.Path, file: out}
	require.NoError(t, os.WriteFile(f.Path, []byte(strings.NewReplacer("42", "old", "y = x", "y = 2").Replace(book)), 0o600))
	from, ok := r.reload(t.Context(), sourcesOf(f.Document, -1))
	require.True(t, ok)
	require.Equal(t, 2, from)
	require.Equal(t, "42\n", r.file.Cell(1).Outputs()[0].Text)
}

// TestSavedWhileACellRuns: a watch goes on, from what was changed, and what the cells
// before that showed is written.
func TestSavedWhileACellRuns(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(string) string
		from   int
	}{
		"another cell": {func(s string) string { return strings.Replace(s, "y = x", "y = 2", 1) }, 2},
		"its own code": {func(s string) string { return strings.Replace(s, "x = 40", "x = 41", 1) }, 1},
		"words alone":  {func(s string) string { return strings.Replace(s, "# Prices", "# Costs", 1) }, 2},
	} {
		f := open(t, book)
		r := &runner{app: &app{console.New(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}, nil)}, flags: runFlags{inPlace: true, watch: true}, path: f.Path, file: f}
		require.NoError(t, f.SetOutputs(notebook.At(1), 7, notebook.Output{Type: notebook.Stream, Name: "stdout", Text: "shown\n"}))
		require.NoError(t, os.WriteFile(f.Path, []byte(tc.change(book)), 0o600))
		_, err := f.Save(t.Context())
		require.True(t, r.overtaken(err), name)
		ran, seen := r.after(run.Report{Next: 1, Cells: []run.Cell{{Index: 1, Outcome: messages.OutcomeOK}, {Index: 2}}}, err)
		require.Nil(t, seen, name)
		from, ok := r.reload(t.Context(), ran)
		require.True(t, ok, name)
		require.Equal(t, tc.from, from, name)
		if from == 1 {
			continue
		}
		_, err = r.keep(t.Context(), nil)
		require.NoError(t, err, name)
		now, err := notebook.Open(t.Context(), f.Path)
		require.NoError(t, err)
		require.Equal(t, "shown\n", now.Cell(1).Outputs()[0].Text, name)
		require.Equal(t, strings.Contains(tc.change(book), "# Costs"), strings.Contains(now.Cell(0).Source(), "Costs"), name)
	}
}
