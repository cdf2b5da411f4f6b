package notebook

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/cmd/internal/cli/console"
)

// TestMain holds that nothing is left but the clock of the highlighter, which ends by itself.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/dlclark/regexp2/v2.runClock"))
}

// book is a notebook with a heading, a cell that has run, and one that has not.
const book = `{
 "cells": [
  {"cell_type": "markdown", "id": "top", "metadata": {}, "source": "# Prices"},
  {"cell_type": "code", "id": "calc", "metadata": {"tags": ["parameters"]}, "execution_count": 3, "outputs": [{"output_type": "stream", "name": "stdout", "text": "42\n"}], "source": "x = 40\nprint(x + 2)"},
  {"cell_type": "code", "id": "last", "metadata": {}, "execution_count": null, "outputs": [], "source": "y = x"}
 ],
 "metadata": {"kernelspec": {"display_name": "Python 3", "name": "python3"}},
 "nbformat": 4,
 "nbformat_minor": 5
}
`

// ended is how a command ended.
type ended struct {
	code     int
	out, err string // standard output; what was told, and the error
	dir      string
}

// command runs a command in a folder with the notebook a.ipynb. In its arguments DIR is
// the folder.
func command(t *testing.T, make func(*console.Console) *cobra.Command, stdin string, args ...string) ended {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"a.ipynb": book, "b.ipynb": strings.Replace(book, "y = x", "y = x + 1", 1), "broken.ipynb": "{"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return in(t, dir, make, stdin, args...)
}

// in runs a command in a folder.
func in(t *testing.T, dir string, make func(*console.Console) *cobra.Command, stdin string, args ...string) ended {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := make(console.New(strings.NewReader(stdin), &stdout, &stderr, []string{"HOME=" + dir}))
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	line := append([]string{}, args...)
	for i := range line {
		line[i] = strings.ReplaceAll(line[i], "DIR", dir)
	}
	cmd.SetArgs(line)
	cmd.SetOut(&stdout)
	err := cmd.Execute()
	e := ended{dir: dir, out: strings.ReplaceAll(stdout.String(), dir, "DIR"), err: strings.ReplaceAll(stderr.String(), dir, "DIR")}
	if exit, ok := errors.AsType[*console.Exit](err); ok {
		e.code = exit.Code
	} else if err != nil {
		e.code = console.Usage
	}
	if err != nil {
		e.err += strings.ReplaceAll(err.Error(), dir, "DIR")
	}
	return e
}

// text is a notebook of the folder as text.
func (e ended) text(t *testing.T, name string) string {
	t.Helper()
	shown := in(t, e.dir, Command, "", "show", "DIR/"+name)
	require.Zero(t, shown.code, shown.err)
	return shown.out
}

// TestReading shows and looks, and leaves the file as it is.
func TestReading(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		stdin string
		args  []string
		code  int
		want  []string // in standard output
		none  string   // and this not
		err   string
	}{
		"show":               {args: []string{"show", "DIR/a.ipynb"}, want: []string{"# %% [markdown] cell:0\n# Prices\n# %% [code] cell:1\nx = 40\nprint(x + 2)\n# %% [code] cell:2\ny = x\n"}},
		"standard input":     {stdin: book, args: []string{"show", "-"}, want: []string{"# %% [code] cell:2\ny = x\n"}},
		"lines":              {args: []string{"show", "DIR/a.ipynb:4-5"}, want: []string{"x = 40\nprint(x + 2)\n"}},
		"cells":              {args: []string{"show", "DIR/a.ipynb", "--cells", "2-"}, want: []string{"# %% [code] cell:2\ny = x\n"}},
		"outputs":            {args: []string{"show", "DIR/a.ipynb", "--outputs"}, want: []string{"#> with outputs: to read, not to apply\n# %% [markdown]", "print(x + 2)\n#> 42\n# %% [code] cell:2"}},
		"no such line":       {args: []string{"show", "DIR/a.ipynb:99"}, code: 2, err: "nothing is selected: there are 7 lines"},
		"nor with outputs":   {args: []string{"show", "DIR/a.ipynb:99-", "--outputs"}, code: 2, err: "nothing is selected: there are 7 lines"},
		"lines past it":      {args: []string{"show", "DIR/a.ipynb:6-99"}, want: []string{"# %% [code] cell:2\ny = x\n"}},
		"a cell without":     {args: []string{"show", "DIR/a.ipynb", "--outputs", "--cells", "2"}, want: []string{"# %% [code] cell:2\ny = x\n"}, none: "#>"},
		"numbers":            {args: []string{"show", "DIR/a.ipynb", "-n"}, want: []string{"    4 x = 40\n"}},
		"raw":                {args: []string{"show", "DIR/a.ipynb", "--raw"}, want: []string{book}},
		"lines twice":        {args: []string{"show", "DIR/a.ipynb:1", "--lines", "2"}, code: 2, err: "give the lines once"},
		"raw with outputs":   {args: []string{"show", "DIR/a.ipynb", "--raw", "--outputs"}, code: 2, err: "without --outputs"},
		"no such cell":       {args: []string{"show", "DIR/a.ipynb", "--cells", "9"}, code: 2, err: "9"},
		"no such file":       {args: []string{"show", "DIR/none.ipynb"}, code: 1, err: "none.ipynb"},
		"no file":            {args: []string{"show"}, code: 2, err: "use it as: notebook show"},
		"broken":             {args: []string{"show", "DIR/broken.ipynb"}, code: 1, err: "broken.ipynb"},
		"table":              {args: []string{"cells", "DIR/a.ipynb"}, want: []string{"cell", "calc", "(parameters) x = 40", "[3]"}},
		"table as JSON":      {args: []string{"cells", "DIR/a.ipynb", "--json"}, want: []string{`"id":"calc"`}},
		"search":             {args: []string{"search", "DIR/a.ipynb", `x \+ \d`}, want: []string{"cell:1:2:7: print(x + 2)\n"}},
		"search a text":      {args: []string{"search", "DIR/a.ipynb", "-F", "x + 2", "--json"}, want: []string{`"cell":1`, `"line":2`}},
		"search in vain":     {args: []string{"search", "DIR/a.ipynb", "zzz"}, code: 1},
		"search for no RE":   {args: []string{"search", "DIR/a.ipynb", "("}, code: 2, err: "pattern: "},
		"validate":           {args: []string{"validate", "DIR/a.ipynb"}, want: []string{"DIR/a.ipynb: valid\n"}},
		"validate in vain":   {args: []string{"validate", "DIR/a.ipynb", "DIR/broken.ipynb"}, code: 1, want: []string{"DIR/a.ipynb: valid\n", "DIR/broken.ipynb: "}},
		"validate them all":  {args: []string{"validate", "DIR/none.ipynb", "DIR/a.ipynb"}, code: 1, want: []string{"DIR/a.ipynb: valid\n"}, err: "Notebook not found: DIR/none.ipynb"},
		"validate as JSON":   {args: []string{"validate", "DIR/a.ipynb", "--json"}, want: []string{`"problems":[]`}},
		"no difference":      {args: []string{"diff", "DIR/a.ipynb", "DIR/a.ipynb"}},
		"a difference":       {args: []string{"diff", "DIR/a.ipynb", "DIR/b.ipynb"}, code: 1, want: []string{"- y = x\n  + y = x + 1\n"}},
		"differences, JSON":  {args: []string{"diff", "DIR/a.ipynb", "DIR/b.ipynb", "--json"}, code: 1, want: []string{`"lines":["-y = x","+y = x + 1"]`}},
		"tags":               {args: []string{"tag", "DIR/a.ipynb", "1", "id:last"}, want: []string{"cell 1: parameters\ncell 2:\n"}},
		"metadata":           {args: []string{"meta", "DIR/a.ipynb", "kernelspec.name"}, want: []string{`"python3"`}},
		"metadata, a cell":   {args: []string{"meta", "DIR/a.ipynb", "tags", "--cell", "1"}, want: []string{`parameters`}},
		"no metadata":        {args: []string{"meta", "DIR/a.ipynb", "a.b"}, code: 1, err: `there is no metadata "a.b"`},
		"strip, to look":     {args: []string{"strip", "--check", "DIR/a.ipynb"}, code: 1, want: []string{"DIR/a.ipynb: 1 cell to strip\n"}},
		"strip, look at all": {args: []string{"strip", "--check", "DIR/broken.ipynb", "DIR/a.ipynb"}, code: 1, want: []string{"DIR/a.ipynb: 1 cell to strip\n"}, err: "broken.ipynb"},
		"its help":           {args: nil, want: []string{"Edit cells:", "show"}},
		"no such command":    {args: []string{"shw"}, code: 2, err: "unknown command"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := command(t, Command, tc.stdin, tc.args...)
			require.Equal(t, tc.code, e.code, "%s%s", e.out, e.err)
			for _, want := range tc.want {
				require.Contains(t, e.out, want)
			}
			if tc.none != "" {
				require.NotContains(t, e.out, tc.none)
			}
			require.Contains(t, e.err, tc.err)
			data, err := os.ReadFile(filepath.Join(e.dir, "a.ipynb"))
			require.NoError(t, err)
			require.Equal(t, book, string(data), "it was only read")
		})
	}
}

// TestEditing changes what it says, and nothing else.
func TestEditing(t *testing.T) {
	t.Parallel()
	const whole = "# %% [markdown] cell:0\n# Prices\n# %% [code] cell:1\nx = 40\nprint(x + 2)\n# %% [code] cell:2\ny = x\n"
	for name, tc := range map[string]struct {
		stdin string
		args  []string
		code  int
		said  string // standard output
		text  string // the notebook afterwards; "": as before
		err   string
	}{
		"insert":               {args: []string{"insert", "DIR/a.ipynb", "0", "-c", "import os"}, said: "inserted cell 0 (code, id ", text: "# %% [code] cell:0\nimport os\n# %% [markdown] cell:1\n"},
		"insert at the end":    {stdin: "z = 1\n", args: []string{"insert", "DIR/a.ipynb", "end"}, said: "inserted cell 3 (code", text: "y = x\n# %% [code] cell:3\nz = 1\n"},
		"insert nowhere":       {args: []string{"insert", "DIR/a.ipynb", "x", "-c", "1"}, code: 2, err: `INDEX must be a number, not "x"`},
		"replace":              {args: []string{"replace", "DIR/a.ipynb", "id:calc", "-c", "x = 1"}, said: "replaced cell 1 (code, id calc); its outputs are stale", text: "cell:1\nx = 1\n# %%"},
		"replace the type":     {args: []string{"replace", "DIR/a.ipynb", "2", "-t", "markdown"}, said: "replaced cell 2 (markdown", text: "[markdown] cell:2\ny = x\n"},
		"replace no cell":      {args: []string{"replace", "DIR/a.ipynb", "9", "-c", "1"}, code: 2, err: "9"},
		"delete":               {args: []string{"delete", "DIR/a.ipynb", "0", "2"}, said: "deleted 2 cells, 1 left\n", text: "# %% [code] cell:0\nx = 40\nprint(x + 2)\n"},
		"delete what is not":   {args: []string{"delete", "DIR/a.ipynb", "0", "id:none"}, code: 2, err: "none"},
		"move":                 {args: []string{"move", "DIR/a.ipynb", "2", "0"}, said: "moved to cell 0\n", text: "# %% [code] cell:0\ny = x\n# %% [markdown] cell:1\n"},
		"split":                {args: []string{"split", "DIR/a.ipynb", "1", "2"}, said: "split off cell 2 (code", text: "x = 40\n# %% [code] cell:2\nprint(x + 2)\n"},
		"split nowhere":        {args: []string{"split", "DIR/a.ipynb", "1", "z"}, code: 2, err: "LINE must be a number"},
		"join":                 {args: []string{"join", "DIR/a.ipynb", "1"}, said: "joined into cell 1 (code, id calc)\n", text: "print(x + 2)\ny = x\n"},
		"join too many":        {args: []string{"join", "DIR/a.ipynb", "1", "7"}, code: 2, err: "7"},
		"tag":                  {args: []string{"tag", "DIR/a.ipynb", "2", "--add", "slow"}, said: "tagged 1 cell\n"},
		"metadata":             {args: []string{"meta", "DIR/a.ipynb", "a.b", "true"}, said: "set a.b\n"},
		"metadata of a cell":   {args: []string{"meta", "DIR/a.ipynb", "a", "text", "--cell", "0"}, said: "set a\n"},
		"metadata, away":       {args: []string{"meta", "DIR/a.ipynb", "kernelspec", "--remove"}, said: "removed kernelspec\n"},
		"a cell's, away":       {args: []string{"meta", "DIR/a.ipynb", "tags", "--remove", "--cell", "1"}, said: "removed tags\n"},
		"metadata, away, no":   {args: []string{"meta", "DIR/a.ipynb", "--remove"}, code: 2, err: "--remove needs a PATH"},
		"substitute":           {args: []string{"sub", "DIR/a.ipynb", `x = (\d)\d`, "x = ${1}1"}, said: "replaced 1 match\n", text: "x = 41\n"},
		"substitute a text":    {args: []string{"sub", "DIR/a.ipynb", "-F", "x + 2", "$1"}, said: "replaced 1 match\n", text: "print($1)\n"},
		"substitute elsewhere": {args: []string{"sub", "DIR/a.ipynb", "x", "z", "--cell", "0"}, said: "nothing to change\n"},
		"apply":                {stdin: strings.Replace(whole, "40", "41", 1), args: []string{"apply", "DIR/a.ipynb"}, said: "3 cells: 1 edited; outputs of 1 cell are stale (--clear-stale clears them)\n", text: "x = 41\n"},
		"apply nothing new":    {stdin: whole, args: []string{"apply", "DIR/a.ipynb", "-"}, said: "nothing to change\n"},
		"apply, to look":       {stdin: strings.Replace(whole, "40", "41", 1), args: []string{"apply", "DIR/a.ipynb", "--dry-run"}, said: "- x = 40\n  + x = 41\n"},
		"apply to no cell":     {stdin: strings.Replace(whole, "cell:2", "cell:12", 1), args: []string{"apply", "DIR/a.ipynb"}, said: "3 cells: 1 new, 1 deleted\n", err: "take DIR/a.ipynb back"},
		"apply twice to one":   {stdin: strings.Replace(whole, "cell:2", "cell:1", 1), args: []string{"apply", "DIR/a.ipynb"}, said: "3 cells: 1 new, 1 deleted\n", err: "coppice: line 6 names cell:1, as a line above does; it makes a new cell, without outputs, id and metadata\n"},
		"and only look":        {stdin: strings.Replace(whole, "cell:2", "cell:12", 1), args: []string{"apply", "DIR/a.ipynb", "--dry-run"}, said: "cell:2", err: "no line names cell 2, so that what is there goes; if a number was mistyped, mend it before you apply the text"},
		"apply with outputs":   {stdin: outputsHead + "\n" + whole, args: []string{"apply", "DIR/a.ipynb"}, code: 2, err: "the text has outputs in it, as show --outputs writes them"},
		"edit with outputs":    {stdin: "\ufeff" + outputsHead + "\r\n" + whole, args: []string{"edit", "DIR/a.ipynb", "--format", "percent"}, code: 2, err: "the text has outputs in it"},
		"new with outputs":     {stdin: outputsHead + "\n" + whole, args: []string{"new", "DIR/n.ipynb", "--from", "-"}, code: 2, err: "the text has outputs in it"},
		"apply an empty text":  {args: []string{"apply", "DIR/a.ipynb"}, code: 2, err: "the text is empty, and would delete all 3 cells"},
		"edit by a pipe":       {stdin: strings.Replace(whole, "y = x", "y = 2", 1), args: []string{"edit", "DIR/a.ipynb"}, said: "3 cells: 1 edited\n", text: "y = 2\n"},
		"strip all":            {args: []string{"strip", "DIR/b.ipynb", "DIR/broken.ipynb", "DIR/none.ipynb", "DIR/a.ipynb"}, code: 1, said: "DIR/b.ipynb: stripped 1 cell\nDIR/a.ipynb: stripped 1 cell\n", err: "Notebook not found: DIR/none.ipynb"},
		"strip":                {args: []string{"strip", "DIR/a.ipynb"}, said: "DIR/a.ipynb: stripped 1 cell\n"},
		"new, but it is there": {args: []string{"new", "DIR/a.ipynb"}, code: 1, err: "the file exists; nothing was written"},
		"not a notebook":       {args: []string{"delete", "DIR/broken.ipynb", "0"}, code: 1, err: "broken.ipynb"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := command(t, Command, tc.stdin, tc.args...)
			require.Equal(t, tc.code, e.code, "%s%s", e.out, e.err)
			require.Contains(t, e.out, tc.said)
			require.Contains(t, e.err, tc.err)
			if tc.text == "" {
				require.Equal(t, whole, e.text(t, "a.ipynb"))
			} else {
				require.Contains(t, e.text(t, "a.ipynb"), tc.text)
			}
			if tc.code != 0 && tc.said == "" {
				data, err := os.ReadFile(filepath.Join(e.dir, "a.ipynb"))
				require.NoError(t, err)
				require.Equal(t, book, string(data), "what fails changes nothing")
			}
		})
	}
}

// TestWholeFiles makes, strips and merges.
func TestWholeFiles(t *testing.T) {
	t.Parallel()
	e := command(t, Command, "", "new", "DIR/n.ipynb")
	require.Equal(t, "made DIR/n.ipynb with 0 cells\n", e.out, e.err)
	e = command(t, Command, "# %%\n1 + 1\n# %% [markdown]\n# words\n", "new", "DIR/n.ipynb", "--from", "-")
	require.Equal(t, "made DIR/n.ipynb with 2 cells\n", e.out, e.err)
	require.Equal(t, "# %% [code] cell:0\n1 + 1\n# %% [markdown] cell:1\nwords\n", e.text(t, "n.ipynb"))

	// The same lines are a heading of the view, and words of a script.
	const either = "# %% [markdown]\n# Words\n"
	e = command(t, Command, either, "new", "DIR/n.ipynb", "--from", "-", "--format", "percent")
	require.Equal(t, "# %% [markdown] cell:0\nWords\n", e.text(t, "n.ipynb"), e.err)
	e = command(t, Command, either, "new", "DIR/n.ipynb", "--from", "-", "--format", "view")
	require.Equal(t, "# %% [markdown] cell:0\n# Words\n", e.text(t, "n.ipynb"), e.err)
	e = command(t, Command, either, "apply", "DIR/a.ipynb", "-", "--format", "percent")
	require.Equal(t, "# %% [markdown] cell:0\nWords\n", e.text(t, "a.ipynb"), e.err)
	e = command(t, Command, "", "new", "DIR/n.ipynb", "--format", "yaml")
	require.Equal(t, 2, e.code)
	require.Contains(t, e.err, "must be auto, view or percent")

	e = command(t, Command, book, "strip", "-")
	require.Zero(t, e.code, e.err)
	require.NotContains(t, e.out, "42")

	e = command(t, Command, "", "merge", "DIR/a.ipynb", "DIR/b.ipynb", "DIR/a.ipynb", "-o", "DIR/m.ipynb")
	require.Zero(t, e.code, e.err)
	require.Contains(t, e.text(t, "m.ipynb"), "y = x + 1")
	theirs := strings.Replace(book, "y = x", "y = x + 2", 1)
	e = command(t, Command, theirs, "merge", "DIR/a.ipynb", "DIR/b.ipynb", "-")
	require.Equal(t, 1, e.code)
	require.Contains(t, e.out, "<<<<<<<")
	require.Contains(t, e.err, "coppice: ")
}

// TestAnEditor edits a notebook as text, and what it leaves is applied.
func TestAnEditor(t *testing.T) {
	t.Parallel()
	e := command(t, Command, "", "show", "DIR/a.ipynb")
	var stdout, stderr bytes.Buffer
	a := &app{console.New(strings.NewReader(""), &stdout, &stderr, nil)}
	path := filepath.Join(e.dir, "a.ipynb")
	require.ErrorContains(t, a.editInEditor(t.Context(), path, applyFlags{}), "no editor: set VISUAL or EDITOR")
	edited := filepath.Join(e.dir, "edited")
	require.NoError(t, os.WriteFile(edited, []byte(strings.Replace(e.out, "40", "41", 1)), 0o600))
	a.Env = []string{"EDITOR=cp " + edited, "PATH=" + os.Getenv("PATH")}
	require.NoError(t, a.editInEditor(t.Context(), path, applyFlags{}), stderr.String())
	require.Contains(t, stdout.String(), "3 cells: 1 edited")
	require.Contains(t, e.text(t, "a.ipynb"), "x = 41\n")
	a.Env = []string{"VISUAL=false", "EDITOR=true", "PATH=" + os.Getenv("PATH")}
	require.ErrorContains(t, a.editInEditor(t.Context(), path, applyFlags{}), "run the editor false: exit status 1; nothing was changed")
}

// TestExport writes a notebook in each form, to where it is asked to.
func TestExport(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args []string
		code int
		want string
		err  string
		file string // written, in place of standard output
	}{
		"a page":              {args: []string{"DIR/a.ipynb"}, want: "<h1"},
		"a page with a title": {args: []string{"DIR/a.ipynb", "--title", "Sums"}, want: "<title>Sums</title>"},
		"Markdown":            {args: []string{"DIR/a.ipynb", "--to", "md"}, want: "# Prices\n"},
		"a script":            {args: []string{"DIR/a.ipynb", "--to", "py"}, want: "# %% tags=[\"parameters\"]\nx = 40\n"},
		"by its extension":    {args: []string{"DIR/a.ipynb", "-o", "DIR/out.py"}, want: "y = x", file: "out.py"},
		"an unknown form":     {args: []string{"DIR/a.ipynb", "--to", "pdf"}, code: 2, err: `html, md or py, not to "pdf"`},
		"over itself":         {args: []string{"DIR/a.ipynb", "--to", "md", "-o", "DIR/a.ipynb"}, code: 2, err: "--output is DIR/a.ipynb itself"},
		"nothing":             {args: []string{}, code: 2, err: "use it as: export"},
		"broken":              {args: []string{"DIR/broken.ipynb"}, code: 1, err: "broken.ipynb"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := command(t, ExportCommand, "", tc.args...)
			require.Equal(t, tc.code, e.code, "%s%s", e.out, e.err)
			require.Contains(t, e.err, tc.err)
			got := e.out
			if tc.file != "" {
				require.Empty(t, got)
				data, err := os.ReadFile(filepath.Join(e.dir, tc.file))
				require.NoError(t, err)
				got = string(data)
			}
			require.Contains(t, got, tc.want)
		})
	}
}

// TestWhoMayReadAnExport is up to the umask, as of what any other program writes, and to
// the mode of a file that is there.
func TestWhoMayReadAnExport(t *testing.T) {
	t.Parallel()
	picture := strings.Replace(book, `{"output_type": "stream", "name": "stdout", "text": "42\n"}`, `{"output_type": "display_data", "metadata": {}, "data": {"image/png": "AA=="}}`, 1)
	dir := t.TempDir()
	mode := func(name ...string) os.FileMode {
		info, err := os.Stat(filepath.Join(append([]string{dir}, name...)...))
		require.NoError(t, err)
		return info.Mode()
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.ipynb"), []byte(picture), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "there.md"), nil, 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder"), 0o777))
	made, err := os.Create(filepath.Join(dir, "file"))
	require.NoError(t, err)
	require.NoError(t, made.Close())
	for _, name := range []string{"new.html", "new.md", "new.py", "there.md"} {
		e := in(t, dir, ExportCommand, "", "DIR/a.ipynb", "-o", "DIR/"+name, "--images", filepath.Join(dir, "pictures"))
		require.Zero(t, e.code, e.err)
	}
	for _, name := range []string{"new.html", "new.md", "new.py"} {
		require.Equal(t, mode("file"), mode(name), name)
	}
	require.Equal(t, mode("a.ipynb"), mode("there.md"))
	require.Equal(t, mode("folder"), mode("pictures"))
	require.Equal(t, mode("file"), mode("pictures", "picture-1.png"))
}
