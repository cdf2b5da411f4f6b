//go:build linux

package integration_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/notebook"
	nbrun "github.com/coppice-run/coppice/notebook/run"
	"github.com/coppice-run/coppice/test/backends"
	"github.com/coppice-run/coppice/test/testpython"
)

// brief are the notebooks that are run without COPPICE_TEST_FULL.
var brief = []string{"errors", "rich", "updates", "widgets"}

// The same notebooks, run by Jupyter's own nbconvert --execute and by
// RunNotebook on the gateway backend, have the same outputs, cell by cell. What
// may differ is in normal and in knownDifferences alone. COPPICE_TEST_FULL=1
// runs all of them, by the command.
func TestNotebooksRunAsJupyterRunsThem(t *testing.T) {
	t.Parallel()
	full := os.Getenv("COPPICE_TEST_FULL") != ""
	names := brief
	if full {
		names = nil
		scripts, err := filepath.Glob("testdata/notebooks/*.py")
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(scripts), 15)
		for _, s := range scripts {
			names = append(names, strings.TrimSuffix(filepath.Base(s), ".py"))
		}
	}
	dir := t.TempDir()
	for _, name := range names {
		writeNotebook(t, name, filepath.Join(dir, name+".ipynb"))
	}
	theirs, ours := filepath.Join(dir, "theirs"), filepath.Join(dir, "ours")
	require.NoError(t, os.MkdirAll(ours, 0o700))
	nbconvert(t, dir, theirs, slices.DeleteFunc(slices.Clone(names), recorded))
	for _, name := range names {
		if recorded(name) {
			data, err := os.ReadFile(recording(name))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(theirs, name+".ipynb"), data, 0o600))
		}
	}
	if full {
		byCommand(t, dir, ours, names)
	} else {
		byLibrary(t, dir, ours, names)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			want, got := outcome(t, filepath.Join(theirs, name+".ipynb")), outcome(t, filepath.Join(ours, name+".ipynb"))
			knownDifferences(t, name, want, got)
			require.Empty(t, cmp.Diff(want, got), "nbconvert (-) and coppice (+) differ")
			require.Empty(t, cmp.Diff(widgetState(t, filepath.Join(theirs, name+".ipynb")), widgetState(t, filepath.Join(ours, name+".ipynb"))), "of the widgets")
		})
	}
	valid(t, ours, names)
}

// recording is the file with what nbconvert made of a notebook.
func recording(name string) string {
	return filepath.Join("testdata", "notebooks", name+".nbclient.ipynb")
}

// recorded says whether nbconvert's outputs are taken from a file: of the notebook with
// widgets, which nbclient 0.11 runs in three seconds or, one time in three, not to its end.
func recorded(name string) bool { return name == "widgets" }

// writeNotebook makes a notebook of a script.
func writeNotebook(t *testing.T, name, path string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "notebooks", name+".py"))
	require.NoError(t, err)
	d := notebook.New()
	_, err = d.ApplyText(string(text), &notebook.ApplyOptions{Format: notebook.FormatPercent})
	require.NoError(t, err)
	require.NoError(t, d.SetNotebookMetadata(json.RawMessage(`{"name": "python3", "display_name": "Python 3", "language": "python"}`), "kernelspec"))
	require.NoError(t, os.WriteFile(path, d.Bytes(), 0o600))
}

// nbconvert runs notebooks with Jupyter's own tool, all in one process.
func nbconvert(t *testing.T, dir, out string, names []string) {
	t.Helper()
	// Without what takes a second to be imported, and is not used.
	args := []string{"-c", "import runpy, sys; sys.modules['rfc3987_syntax'] = None; runpy.run_module('nbconvert', run_name='__main__', alter_sys=True)", "--to", "notebook", "--execute", "--allow-errors", "--output-dir", out}
	for _, n := range names {
		args = append(args, n+".ipynb")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, testpython.Path(t), args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "PYTHONWARNINGS=ignore::UserWarning:traitlets")
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", said)
}

func byLibrary(t *testing.T, dir, out string, names []string) {
	t.Helper()
	host := on(t, backends.Gateway)
	for _, name := range names {
		d, err := notebook.Open(t.Context(), filepath.Join(dir, name+".ipynb"))
		require.NoError(t, err)
		f, err := notebook.NewFile(t.Context(), filepath.Join(out, name+".ipynb"), d.Document)
		require.NoError(t, err)
		s := host.Session(name, coppice.In(dir))
		report, err := s.RunNotebook(t.Context(), f.Document, nbrun.Options{Save: f.Save, AllowErrors: true, Timeout: time.Minute})
		require.NoError(t, err)
		require.Equal(t, messages.OutcomeOK, report.Outcome, "%+v", report)
		require.NoError(t, s.Close(t.Context()))
	}
}

func byCommand(t *testing.T, dir, out string, names []string) {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "coppice")
	said, err := exec.Command("go", "build", "-o", bin, "../../cmd/coppice").CombinedOutput()
	require.NoError(t, err, "%s", said)
	home := t.TempDir()
	for _, name := range names {
		cmd := exec.Command(bin, "notebook", "run", name+".ipynb", "--backend", "gateway", "--python", testpython.Path(t), "--allow-errors", "--timeout", "60", "--output", filepath.Join(out, name+".ipynb"))
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+home)
		said, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", name, said)
	}
}

// cell is what a run left in a cell, made comparable.
type cell struct {
	Source  string
	Count   int
	Outputs []map[string]any
}

// outcome reads what a run left in a notebook.
func outcome(t *testing.T, path string) []cell {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	var nb struct {
		Cells []struct {
			Source         any              `json:"source"`
			ExecutionCount int              `json:"execution_count"`
			Outputs        []map[string]any `json:"outputs"`
		} `json:"cells"`
	}
	require.NoError(t, json.Unmarshal(data, &nb))
	cells := make([]cell, len(nb.Cells))
	for i, c := range nb.Cells {
		cells[i] = cell{Source: sourceOf(c.Source), Count: c.ExecutionCount, Outputs: coalesced(c.Outputs)}
	}
	return cells
}

// widgetState is what a notebook keeps of its widgets.
func widgetState(t *testing.T, path string) any {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	var nb struct {
		Metadata struct {
			Widgets any `json:"widgets"`
		} `json:"metadata"`
	}
	require.NoError(t, json.Unmarshal(data, &nb))
	return joined(nb.Metadata.Widgets)
}

// sourceOf is a source in one piece.
func sourceOf(v any) string {
	s, _ := joined(v).(string) // that of an empty cell is an empty list
	return s
}

// joined is a value with each text in one piece, whatever lines it is kept in,
// and without what differs from run to run.
func joined(v any) any {
	switch v := v.(type) {
	case []any:
		if len(v) == 0 || slices.ContainsFunc(v, func(x any) bool { _, ok := x.(string); return !ok }) {
			for i := range v {
				v[i] = joined(v[i])
			}
			return v
		}
		var b strings.Builder
		for _, x := range v {
			b.WriteString(x.(string))
		}
		return normal(b.String())
	case map[string]any:
		for k := range v {
			v[k] = joined(v[k])
		}
		return v
	case string:
		return normal(v)
	default:
		return v
	}
}

var (
	address  = regexp.MustCompile(`0x[0-9a-f]{6,}`)
	tempFile = regexp.MustCompile(`ipykernel_\d+/\d+\.py`)
	dates    = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?`)
)

// normal replaces memory addresses, the names of temporary files, which hold
// the process id, and times.
func normal(s string) string {
	s = address.ReplaceAllString(s, "0xADDRESS")
	s = tempFile.ReplaceAllString(s, "ipykernel_PID/N.py")
	return dates.ReplaceAllString(s, "TIME")
}

// coalesced joins stream outputs of one name that follow each other: where a
// kernel cuts a stream is a matter of time.
func coalesced(outputs []map[string]any) []map[string]any {
	var out []map[string]any
	for _, o := range outputs {
		o = joined(o).(map[string]any)
		if n := len(out); n > 0 && o["output_type"] == "stream" && out[n-1]["output_type"] == "stream" && out[n-1]["name"] == o["name"] {
			out[n-1]["text"] = out[n-1]["text"].(string) + o["text"].(string)
			continue
		}
		out = append(out, o)
	}
	return out
}

// knownDifferences takes out what is meant to differ, once it has seen that it
// does; notebook/run/RUNNING.md says why.
func knownDifferences(t *testing.T, name string, want, got []cell) {
	t.Helper()
	switch name {
	case "pager":
		require.Equal(t, "len?", got[0].Source)
		require.Empty(t, want[0].Outputs, "nbconvert drops what code shows in a pager")
		require.Len(t, got[0].Outputs, 1)
		got[0].Outputs = nil
	case "errors":
		incomplete, plain := want[4].Outputs[0], got[4].Outputs[0]
		require.Contains(t, incomplete["evalue"], "incomplete input")
		require.Equal(t, "'(' was never closed", plain["evalue"])
		plain["evalue"] = incomplete["evalue"]
	}
}

// valid asks Python's nbformat about every notebook of a folder.
func valid(t *testing.T, dir string, names []string) {
	t.Helper()
	args := []string{"-c", "import sys; sys.modules['rfc3987_syntax'] = None\nimport nbformat\nfor p in sys.argv[1:]: nbformat.validate(nbformat.read(p, as_version=nbformat.NO_CONVERT))"}
	for _, n := range names {
		args = append(args, filepath.Join(dir, n+".ipynb"))
	}
	said, err := exec.Command(testpython.Path(t), args...).CombinedOutput()
	require.NoError(t, err, "%s", said)
}
