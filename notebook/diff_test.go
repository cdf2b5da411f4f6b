package notebook_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/notebook"
)

func TestLCS(t *testing.T) {
	t.Parallel()
	line := rapid.SampledFrom([]string{"a", "b", "c"})
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOfN(line, 0, 12).Draw(t, "a")
		b := rapid.SliceOfN(line, 0, 12).Draw(t, "b")
		got := notebook.LCS(a, b)
		lastA, lastB := -1, -1
		for _, p := range got {
			require.Greater(t, p.A, lastA)
			require.Greater(t, p.B, lastB)
			require.Equal(t, a[p.A], b[p.B])
			lastA, lastB = p.A, p.B
		}
		require.Len(t, got, lengthOfLCS(a, b))
	})
}

// lengthOfLCS is the textbook recurrence.
func lengthOfLCS(a, b []string) int {
	table := make([][]int, len(a)+1)
	for i := range table {
		table[i] = make([]int, len(b)+1)
	}
	for i := range a {
		for j := range b {
			if a[i] == b[j] {
				table[i+1][j+1] = table[i][j] + 1
			} else {
				table[i+1][j+1] = max(table[i][j+1], table[i+1][j])
			}
		}
	}
	return table[len(a)][len(b)]
}

// Two long texts with nothing in common do not take forever; what begins and
// ends both alike is still found.
func TestLCSIsBounded(t *testing.T) {
	t.Parallel()
	a, b := []string{"head"}, []string{"head"}
	for i := range 5000 {
		a = append(a, "a"+strings.Repeat("x", i%7))
		b = append(b, "b"+strings.Repeat("x", i%7))
	}
	a, b = append(a, "tail"), append(b, "tail")
	require.Equal(t, []notebook.Matched{{0, 0}, {5001, 5001}}, notebook.LCS(a, b))
}

func TestDiff(t *testing.T) {
	t.Parallel()
	base := func() *notebook.Document {
		d := ran(t, "import os\nx = 1\ny = 2", "second", "third")
		_, err := d.Append(notebook.NewCell{Type: notebook.Markdown, Source: "# end", ID: "z"})
		require.NoError(t, err)
		return d
	}
	must := func(_ any, err error) { require.NoError(t, err) }
	for name, tt := range map[string]struct {
		edit func(d *notebook.Document)
		want string
	}{
		"nothing": {func(*notebook.Document) {}, ""},
		"source": {func(d *notebook.Document) {
			d.Stale = notebook.StaleKeep
			must(d.SetSource(notebook.At(0), "import os\nx = 10\ny = 2"))
		}, "~ [code] cell:0 source\n    import os\n  - x = 1\n  + x = 10\n    y = 2\n"},
		"marked": {func(d *notebook.Document) { must(d.SetSource(notebook.At(1), "other")) }, "~ [code] cell:1 source, metadata\n  - second\n  + other\n"},
		"added and deleted": {func(d *notebook.Document) {
			must(d.Insert(1, code("new\nlines")))
			require.NoError(t, d.Delete(notebook.ByID("c")))
		}, "+ [code] cell:1\n  + new\n  + lines\n- [code] cell:2\n  - third\n"},
		"deleted at the end": {func(d *notebook.Document) { require.NoError(t, d.Delete(notebook.ByID("z"))) }, "- [markdown] cell:3\n  - # end\n"},
		"moved":              {func(d *notebook.Document) { require.NoError(t, d.Move(notebook.At(3), 0)) }, "~ [markdown] cell:0 moved from 3\n"},
		"type":               {func(d *notebook.Document) { must(d.SetType(notebook.ByID("z"), notebook.Raw)) }, "~ [raw] cell:3 was markdown\n"},
		"outputs":            {func(d *notebook.Document) { require.NoError(t, d.SetOutputs(notebook.At(1), 7)) }, "~ [code] cell:1 outputs, execution_count\n"},
		"metadata": {func(d *notebook.Document) {
			require.NoError(t, d.SetTags(notebook.At(1), "t"))
			require.NoError(t, d.SetNotebookMetadata(1, "k"))
		}, "~ metadata: k\n~ [code] cell:1 metadata\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := base()
			tt.edit(d)
			diff := notebook.Diff(base(), d)
			require.Equal(t, tt.want, diff.String())
			require.Equal(t, tt.want == "", diff.Empty())
		})
	}
}

// Layout, the order of members, and a text as string or as lines, are no
// difference.
func TestDiffIgnoresLayout(t *testing.T) {
	t.Parallel()
	a := parse(t, `{"cells": [{"cell_type": "code", "metadata": {"a": 1, "b": [2]}, "source": "x\ny", "execution_count": null, "outputs": [
		{"output_type": "stream", "name": "stdout", "text": "a\nb"}, {"output_type": "display_data", "data": {"text/plain": ["x"], "application/json": ["a"]}, "metadata": {}}]}],
		"metadata": {"m": {"n": 1}}, "nbformat": 4, "nbformat_minor": 4}`)
	b := parse(t, `{"nbformat":4,"nbformat_minor":4,"metadata":{"m":{"n":1}},"cells":[{"outputs":[{"text":["a\n","b"],"name":"stdout","output_type":"stream"},
		{"data":{"application/json":["a"],"text/plain":"x"},"metadata":{},"output_type":"display_data"}],"execution_count":null,"source":["x\n","y"],"metadata":{"b":[2],"a":1},"cell_type":"code"}]}`)
	require.True(t, notebook.Diff(a, b).Empty(), notebook.Diff(a, b).String())
	for _, change := range [][2]string{{`"a\n","b"`, `"a\n","c"`}, {`["a"],"text`, `["b"],"text`}, {`{"b":[2],"a":1}`, `{"b":[2],"a":1.0}`}, {`"b":[2]`, `"b":["2"]`}, {`"stdout"`, `"stderr"`}, {`"metadata":{},"output`, `"metadata":{"z":0},"output`}} {
		c := parse(t, strings.Replace(string(b.Bytes()), change[0], change[1], 1))
		require.False(t, notebook.Diff(a, c).Empty(), "%v", change)
	}
	tags := func(list string) *notebook.Document {
		return parse(t, `{"cells": [{"cell_type": "raw", "metadata": {"tags": `+list+`}, "source": ""}], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}`)
	}
	require.False(t, notebook.Diff(tags(`["a", "b"]`), tags(`["ab"]`)).Empty(), "outside of texts, lists are lists")
	older := parse(t, `{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 2}`)
	newer := parse(t, `{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}`)
	require.Equal(t, "~ nbformat\n", notebook.Diff(older, newer).String())
}

// Without ids, cells are matched by what they hold.
func TestDiffWithoutIDs(t *testing.T) {
	t.Parallel()
	old := func(sources ...string) *notebook.Document {
		d := parse(t, `{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}`)
		for _, s := range sources {
			_, err := d.Append(code(s))
			require.NoError(t, err)
		}
		return d
	}
	for _, tt := range []struct {
		before, after []string
		want          string
	}{
		{[]string{"a", "b", "c"}, []string{"a", "c"}, "- [code] cell:1\n  - b\n"},
		{[]string{"a", "c"}, []string{"a", "b", "c"}, "+ [code] cell:1\n  + b\n"},
		{[]string{"a", "x = 1\ny = 2\nz = 3", "c"}, []string{"a", "new", "x = 1\ny = 5\nz = 3", "c"}, "+ [code] cell:1\n  + new\n~ [code] cell:2 source\n    x = 1\n  - y = 2\n  + y = 5\n    z = 3\n"},
		{[]string{"a", "old", "c"}, []string{"a", "new", "c"}, "~ [code] cell:1 source\n  - old\n  + new\n"},
	} {
		require.Equal(t, tt.want, notebook.Diff(old(tt.before...), old(tt.after...)).String())
	}
}

func TestDiffLines(t *testing.T) {
	t.Parallel()
	require.Empty(t, notebook.DiffLines("a\n", "a\n"))
	require.Equal(t, []notebook.DiffLine{{' ', "a", false}, {'-', "b", true}, {'+', "b", false}}, notebook.DiffLines("a\nb", "a\nb\n"))
	rapid.Check(t, func(t *rapid.T) {
		a, b := sourceGen().Draw(t, "a"), sourceGen().Draw(t, "b")
		before, after := "", ""
		for _, l := range notebook.DiffLines(a, b) {
			text := l.Text
			if !l.NoNewline {
				text += "\n"
			}
			if l.Op != '+' {
				before += text
			}
			if l.Op != '-' {
				after += text
			}
		}
		if a != b {
			require.Equal(t, a, before)
			require.Equal(t, b, after)
		}
	})
}

// A difference names every cell that differs, and no other.
func TestDiffIsComplete(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := documentGen().Draw(t, "a")
		b := a.Clone()
		edited := make(map[string]bool)
		for i, c := range b.Cells() {
			if rapid.IntRange(0, 3).Draw(t, "edit") == 0 {
				changed, err := b.SetSource(notebook.At(i), sourceGen().Draw(t, "source"))
				require.NoError(t, err)
				edited[c.ID()] = changed
			}
		}
		got := make(map[string]bool)
		for _, c := range notebook.Diff(a, b).Cells {
			require.Equal(t, c.Old, c.New)
			got[c.ID] = true
		}
		for id, changed := range edited {
			require.Equal(t, changed, got[id])
		}
		for id := range got {
			require.True(t, edited[id])
		}
		require.True(t, notebook.Diff(b, parse(t, string(b.Bytes()))).Empty())
	})
}
