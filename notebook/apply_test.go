package notebook_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/notebook"
)

// threeCells is a notebook with a member of every sort that an edit must keep.
const threeCells = `{
 "cells": [
  {
   "cell_type": "code",
   "execution_count": 5,
   "id": "aaa",
   "metadata": {"tags": ["t"], "custom": 1.0},
   "outputs": [{"name": "stdout", "output_type": "stream", "text": ["1\n"]}],
   "source": ["print(1)"]
  },
  {
   "attachments": {"p.png": {"image/png": "AA=="}},
   "cell_type": "markdown",
   "id": "bbb",
   "metadata": {"m": true},
   "source": ["# Title\n", "text"]
  },
  {
   "cell_type": "raw",
   "id": "ccc",
   "metadata": {"format": "text/x-rst"},
   "source": "raw"
  }
 ],
 "metadata": {"k": [1.50]},
 "nbformat": 4,
 "nbformat_minor": 5
}
`

func apply(t require.TestingT, d *notebook.Document, text string) *notebook.ApplyReport {
	report, err := d.ApplyText(text, nil)
	require.NoError(t, err)
	return report
}

func has(c *notebook.Cell, member string) bool {
	return strings.Contains(string(c.JSON()), `"`+member+`"`)
}

func TestApplyClonesTheCellThatTheMarkerNames(t *testing.T) {
	t.Parallel()
	d := parse(t, threeCells)
	report := apply(t, d, "# %% [code] cell:0\nprint(2)\n# %% [markdown] cell:1\n# Title\ntext\n# %% [raw] cell:2\nraw")
	require.Empty(t, cmp.Diff(&notebook.ApplyReport{Cells: []notebook.AppliedCell{{Was: 0, Edited: true, Stale: true}, {Was: 1}, {Was: 2}}}, report))
	c := d.Cell(0)
	require.Equal(t, "print(2)", c.Source())
	require.Equal(t, "aaa", c.ID())
	count, _ := c.ExecutionCount()
	require.Equal(t, 5, count)
	require.Equal(t, 1, c.OutputCount())
	custom, _ := c.Metadata("custom")
	require.Equal(t, "1.0", string(custom))
	require.Equal(t, []string{"t"}, c.Tags())
	value, _ := d.Metadata("k")
	require.Equal(t, "[1.50]", string(value))
	require.Empty(t, d.Validate())
}

func TestApplyChangesTypes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		cell    int
		from    string
		to      notebook.CellType
		members map[string]bool
	}{
		{0, "code", notebook.Markdown, map[string]bool{"outputs": false, "execution_count": false, "custom": true, "id": true}},
		{0, "code", notebook.Raw, map[string]bool{"outputs": false, "execution_count": false, "custom": true, "id": true}},
		{1, "markdown", notebook.Code, map[string]bool{"outputs": true, "execution_count": true, "m": true, "id": true}},
		{1, "markdown", notebook.Raw, map[string]bool{"outputs": false, "execution_count": false, "attachments": true, "m": true, "id": true}},
		{2, "raw", notebook.Code, map[string]bool{"outputs": true, "execution_count": true, "format": true, "id": true}},
		{2, "raw", notebook.Markdown, map[string]bool{"outputs": false, "execution_count": false, "format": true, "id": true}},
	} {
		t.Run(fmt.Sprintf("%s to %s", tt.from, tt.to), func(t *testing.T) {
			t.Parallel()
			d := parse(t, threeCells)
			was := d.Cell(tt.cell).Source()
			old := fmt.Sprintf("# %%%% [%s] cell:%d", tt.from, tt.cell)
			report := apply(t, d, strings.Replace(d.Text(), old, fmt.Sprintf("# %%%% [%s] cell:%d", tt.to, tt.cell), 1))
			require.True(t, report.Cells[tt.cell].Retyped)
			c := d.Cell(tt.cell)
			require.Equal(t, tt.to, c.Type())
			require.Equal(t, was, c.Source())
			for member, want := range tt.members {
				require.Equal(t, want, has(c, member), member)
			}
			require.Empty(t, d.Validate())
		})
	}
}

func TestApplyToCodeAddsNullAndNoOutputs(t *testing.T) {
	t.Parallel()
	d := parse(t, threeCells)
	apply(t, d, "# %% [code] cell:1\nx")
	require.JSONEq(t, `{"cell_type": "code", "execution_count": null, "id": "bbb", "metadata": {"m": true, "coppice": {"attachments": {"p.png": {"image/png": "AA=="}}}}, "outputs": [], "source": ["x"]}`, string(d.Cell(0).JSON()))
}

// A cell that is code for a while, as one that was commented out, has its pictures
// afterwards; nbformat allows code none.
func TestAttachmentsOutliveAChangeOfType(t *testing.T) {
	t.Parallel()
	d := parse(t, threeCells)
	was := string(d.Cell(1).JSON())
	for _, types := range [][]notebook.CellType{
		{notebook.Code, notebook.Markdown}, {notebook.Raw, notebook.Markdown}, {notebook.Code, notebook.Raw, notebook.Code, notebook.Markdown},
	} {
		for _, typ := range types {
			text := strings.Replace(d.Text(), "# %% ["+string(d.Cell(1).Type())+"] cell:1", "# %% ["+string(typ)+"] cell:1", 1)
			apply(t, d, text)
			require.Equal(t, typ, d.Cell(1).Type())
			require.Empty(t, d.Validate())
			require.Contains(t, string(d.Cell(1).JSON()), "AA==")
			d = parse(t, string(d.Bytes()))
		}
		require.JSONEq(t, was, string(d.Cell(1).JSON()), "%v", types)
	}
	_, err := d.Join(notebook.At(0), 2) // into code
	require.NoError(t, err)
	_, err = d.SetType(notebook.At(0), notebook.Markdown)
	require.NoError(t, err)
	require.Contains(t, string(d.Cell(0).JSON()), "AA==")
	require.Empty(t, d.Validate())
	changed, err := d.SetType(notebook.At(0), notebook.Code)
	require.NoError(t, err)
	require.True(t, changed)
	require.NoError(t, d.SetOutputs(notebook.At(0), 1))
	require.Contains(t, string(d.Cell(0).JSON()), "AA==", "outputs take no mark but their own away")
}

func TestApplyReordersInsertsAndDeletes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text    string
		ids     []string // empty for a new one
		cells   []notebook.AppliedCell
		deleted []int
	}{
		"reorder": {
			"# %% [raw] cell:2\nraw\n# %% [code] cell:0\nprint(1)\n# %% [markdown] cell:1\n# Title\ntext",
			[]string{"ccc", "aaa", "bbb"},
			[]notebook.AppliedCell{{Was: 2, Moved: true}, {Was: 0}, {Was: 1}},
			nil,
		},
		"insert": {
			"# %% [code] cell:0\nprint(1)\n# %% [code]\nnew\n# %% [markdown] cell:1\n# Title\ntext\n# %% [raw] cell:2\nraw",
			[]string{"aaa", "", "bbb", "ccc"},
			[]notebook.AppliedCell{{Was: 0}, {Was: -1}, {Was: 1}, {Was: 2}},
			nil,
		},
		"delete": {
			"# %% [code] cell:0\nprint(1)\n# %% [raw] cell:2\nraw",
			[]string{"aaa", "ccc"},
			[]notebook.AppliedCell{{Was: 0}, {Was: 2}},
			[]int{1},
		},
		"delete all":        {"", []string{}, nil, []int{0, 1, 2}},
		"reused index":      {"# %% [raw] cell:2\nraw\n# %% [raw] cell:2\nraw", []string{"ccc", ""}, []notebook.AppliedCell{{Was: 2}, {Was: -1}}, []int{0, 1}},
		"index beyond":      {"# %% [raw] cell:3\nraw", []string{""}, []notebook.AppliedCell{{Was: -1}}, []int{0, 1, 2}},
		"index beyond int":  {"# %% [raw] cell:99999999999999999999\nraw", []string{""}, []notebook.AppliedCell{{Was: -1}}, []int{0, 1, 2}},
		"index left out":    {"# %% [raw]\nraw", []string{""}, []notebook.AppliedCell{{Was: -1}}, []int{0, 1, 2}},
		"index with zeros":  {"# %% [raw] cell:02\nraw", []string{"ccc"}, []notebook.AppliedCell{{Was: 2}}, []int{0, 1}},
		"clone and new one": {"# %% [raw]\nraw\n# %% [raw] cell:2\nraw", []string{"", "ccc"}, []notebook.AppliedCell{{Was: -1}, {Was: 2}}, []int{0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := parse(t, threeCells)
			report := apply(t, d, tt.text)
			require.True(t, report.Changed())
			require.Empty(t, cmp.Diff(&notebook.ApplyReport{Cells: tt.cells, Deleted: tt.deleted}, report, cmpopts.IgnoreFields(notebook.ApplyReport{}, "Unmatched")))
			require.Len(t, d.Cells(), len(tt.ids))
			for i, id := range tt.ids {
				if id == "" {
					require.Regexp(t, "^[0-9a-f]{8}$", d.Cell(i).ID())
					metadata, _ := d.Cell(i).Metadata()
					require.JSONEq(t, "{}", string(metadata))
				} else {
					require.Equal(t, id, d.Cell(i).ID())
				}
			}
			again := parse(t, string(d.Bytes()))
			require.Equal(t, d.Text(), again.Text())
			require.Empty(t, again.Validate())
		})
	}
}

func TestApplyNewCodeCell(t *testing.T) {
	t.Parallel()
	d := notebook.New()
	d.NewID = func() string { return "new" }
	apply(t, d, "# %% [code]\na\nb\n# %% [markdown]\n")
	require.JSONEq(t, `{"cell_type": "code", "execution_count": null, "id": "new", "metadata": {}, "outputs": [], "source": ["a\n", "b"]}`, string(d.Cell(0).JSON()))
	require.NotEqual(t, "new", d.Cell(1).ID(), "an id is not used twice")
	require.False(t, has(d.Cell(1), "outputs"))
}

// Before nbformat 4.5 cells have no ids, and new cells get none.
func TestApplyGivesIDsFrom45Only(t *testing.T) {
	t.Parallel()
	for minor := range 6 {
		d := parse(t, string(corpus(t)[fmt.Sprintf("nbformat-4.%d", minor)]))
		apply(t, d, d.Text()+"# %% [code]\nnew")
		last := d.Cell(d.Len() - 1)
		require.Equal(t, minor >= 5, last.ID() != "", minor)
		require.Empty(t, d.Validate())
	}
}

func TestApplyCompletesAnIncompleteCell(t *testing.T) {
	t.Parallel()
	d := parse(t, string(corpus(t)["no-metadata-cell"]))
	apply(t, d, d.Text())
	require.True(t, has(d.Cell(0), "outputs"))
	require.True(t, has(d.Cell(0), "execution_count"))
	require.False(t, has(d.Cell(1), "outputs"))
	require.False(t, has(d.Cell(1), "execution_count"))
}

func TestApplyToAMissingNotebook(t *testing.T) {
	t.Parallel()
	f, err := notebook.OpenOrNew(t.Context(), t.TempDir()+"/new.ipynb")
	require.NoError(t, err)
	apply(t, f.Document, "# %% [markdown] cell:0\n# hi\n# %% [code] cell:1\nx")
	save(t, f)
	d := parse(t, readFile(t, f.Path))
	require.Equal(t, "# %% [markdown] cell:0\n# hi\n# %% [code] cell:1\nx", d.Text())
	_, minor := d.Version()
	require.Equal(t, 5, minor)
	require.Empty(t, d.Validate())
}

// The newline that an editor adds is told from one that was there.
func TestEditorNewline(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ was, text, want string }{
		{"a", "# %% [code] cell:0\na\n", "a"},
		{"a\n", "# %% [code] cell:0\na\n", "a\n"},
		{"a", "# %% [code] cell:0\nb\n", "b"},
		{"a\n", "# %% [code] cell:0\nb\n", "b\n"},
		{"a", "# %% [code]\nb\n", "b"},
		{"a", "# %% [code]\nb\n\n", "b\n"},
		{"a", "# %% [code]\nb", "b"},
		{"", "# %% [code] cell:0\n", ""},
	} {
		d := build(t, code(tt.was))
		_, err := d.ApplyText(tt.text, &notebook.ApplyOptions{EditorNewline: true})
		require.NoError(t, err)
		require.Equal(t, tt.want, d.Cell(0).Source(), "%q %q", tt.was, tt.text)
	}
	d := build(t, code("a"))
	apply(t, d, "# %% [code] cell:0\na\n")
	require.Equal(t, "a\n", d.Cell(0).Source(), "without the option, the text is exact")
}

// An editor that ends all lines with CRLF changes no source; sources that had
// such ends keep them.
func TestApplyTextWithCRLF(t *testing.T) {
	t.Parallel()
	d := build(t, code("a\nb"), code("c\r\nd\r\n"), code("e\r\nf\ng"))
	before := string(d.Bytes())
	crlf := strings.ReplaceAll(strings.ReplaceAll(d.Text(), "\r\n", "\n"), "\n", "\r\n")
	require.False(t, apply(t, d, crlf).Changed())
	require.Equal(t, before, string(d.Bytes()))
	apply(t, d, strings.NewReplacer("b\r", "B\r", "d\r", "D\r", "f\r", "F\r").Replace(crlf))
	require.Equal(t, []string{"a\nB", "c\r\nD\r\n", "e\nF\ng"}, sources(d))
}

// A change of one line is a change of one line in the file, in each style.
func TestApplyChangesOneLineOfTheFile(t *testing.T) {
	t.Parallel()
	for name, data := range corpus(t) {
		switch name {
		case "classic-4.2", "lab-4.5", "vscode-indent4", "vscode-tabs-4.5", "colab", "crlf", "bom", "ascii-escapes", "sorted-indent-4", "indent-0":
		default:
			continue
		}
		d := parse(t, string(data))
		d.Stale = notebook.StaleKeep
		apply(t, d, strings.Replace(d.Text(), "cell:0\n", "cell:0\nnew ü line\n", 1))
		after := string(d.Bytes())
		old, added := map[string]int{}, []string{}
		for line := range strings.SplitSeq(string(data), "\n") {
			old[line]++
		}
		for line := range strings.SplitSeq(after, "\n") {
			if old[line]--; old[line] < 0 {
				added = append(added, strings.Trim(line, " \t\r"))
			}
		}
		want := `"new ü line\n",`
		if name == "ascii-escapes" {
			want = `"new \u00fc line\n",`
		}
		require.Equal(t, []string{want}, added, name)
		require.Equal(t, strings.HasSuffix(string(data), "\n"), strings.HasSuffix(after, "\n"), name)
		require.Equal(t, strings.Count(string(data), "\r"), strings.Count(after, "\r")-strings.Count(after, "line\\n\",\r"), name)
	}
}

// A model of the rules: a list of cells with ids, edited as text.
func TestApplyFollowsTheRules(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := documentGen().Draw(t, "document")
		was := d.Cells()
		wasIDs, n := ids(d), len(was)
		var text []string
		var wantIDs, wantSources []string // an empty id is a new cell
		var wantTypes []notebook.CellType
		used := make(map[int]bool)
		for range rapid.IntRange(0, 6).Draw(t, "markers") {
			c := cellGen().Draw(t, "cell")
			index := rapid.IntRange(-1, n+1).Draw(t, "index")
			marker := fmt.Sprintf("# %%%% [%s]", c.Type)
			id := ""
			if index >= 0 {
				marker += fmt.Sprintf(" cell:%d", index)
				if index < n && !used[index] {
					used[index] = true
					id = wasIDs[index]
				}
			}
			one := build(t, c).Text()
			_, body, hasBody := strings.Cut(one, "\n")
			if hasBody {
				marker += "\n" + body
			}
			text = append(text, marker)
			wantIDs, wantSources, wantTypes = append(wantIDs, id), append(wantSources, c.Source), append(wantTypes, c.Type)
		}
		_, err := d.ApplyText(strings.Join(text, "\n"), &notebook.ApplyOptions{Format: notebook.FormatCells})
		require.NoError(t, err)
		d = parse(t, string(d.Bytes()))
		require.Equal(t, len(wantIDs), d.Len())
		for i, c := range d.Cells() {
			if wantIDs[i] != "" {
				require.Equal(t, wantIDs[i], c.ID())
			} else {
				require.NotContains(t, wasIDs, c.ID())
			}
			require.Equal(t, wantSources[i], c.Source())
			require.Equal(t, wantTypes[i], c.Type())
		}
		require.Empty(t, d.Validate())
	})
}

// TestMarkersThatGoBackToNoCellAreReported: the cell that was meant loses what it had.
func TestMarkersThatGoBackToNoCellAreReported(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		in, text string
		want     []notebook.UnmatchedMarker
		deleted  []int
	}{
		"each has its own": {in: threeCells, text: "# %% [code] cell:0\nx\n# %% [markdown] cell:1\n# %% [raw] cell:2"},
		"in another order": {in: threeCells, text: "# %% [raw] cell:2\n# %% [markdown] cell:1\n# %% [code] cell:0"},
		"a new cell":       {in: threeCells, text: "# %% [code]\nx\n# %% [code] cell:0\n# %% [markdown] cell:1\n# %% [raw] cell:2"},
		"one that is not":  {in: threeCells, text: "# %% [code] cell:0\nx\n# %% [markdown] cell:1\n# %% [raw] cell:12", want: []notebook.UnmatchedMarker{{Line: 4, Index: 12}}, deleted: []int{2}},
		"the next one":     {in: threeCells, text: "# %% [code] cell:0\n# %% [markdown] cell:1\n# %% [raw] cell:3", want: []notebook.UnmatchedMarker{{Line: 3, Index: 3}}, deleted: []int{2}},
		"one twice":        {in: threeCells, text: "# %% [code] cell:0\n# %% [markdown] cell:0\n# %% [raw] cell:2", want: []notebook.UnmatchedMarker{{Line: 2, Index: 0, Taken: true}}, deleted: []int{1}},
		"to a new one":     {in: string(notebook.New().Bytes()), text: "# %% [code] cell:0\n# %% [markdown] cell:1"},
		"percent":          {in: threeCells, text: "# %%\nprint(1)\n# %%\nmore", deleted: []int{1, 2}},
	} {
		report := apply(t, parse(t, tc.in), tc.text)
		require.Equal(t, tc.want, report.Unmatched, name)
		require.Equal(t, tc.deleted, report.Deleted, name)
	}
}
