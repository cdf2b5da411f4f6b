package notebook_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/notebook"
)

// Every file of the corpus is written back byte for byte: from memory, from
// the tree, from the tree taken apart to the last element, and from a clone.
func TestCorpusIsWrittenBackByteForByte(t *testing.T) {
	t.Parallel()
	for name, data := range corpus(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := parse(t, string(data))
			require.Equal(t, string(data), string(d.Bytes()))
			var b bytes.Buffer
			n, err := d.WriteTo(&b)
			require.NoError(t, err)
			require.EqualValues(t, len(data), n)
			require.Equal(t, string(data), b.String())
			require.Equal(t, string(data), string(d.Clone().Bytes()))
			if d.UpgradedFrom() == 0 {
				require.Equal(t, string(data), string(notebook.Emit(d)))
				require.Equal(t, string(data), string(notebook.EmitExpanded(d)))
			}
			require.False(t, d.Edited())
		})
	}
}

// An edit of one cell's source leaves every byte of the other cells, and all
// that is around them.
func TestEditTouchesOneCellOnly(t *testing.T) {
	t.Parallel()
	for name, data := range corpus(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := parse(t, string(data))
			d.Upgrade()
			d = parse(t, string(d.Bytes()))
			d.Stale = notebook.StaleKeep
			before := string(d.Bytes())
			for i, c := range d.Cells() {
				e := d.Clone()
				changed, err := e.SetSource(notebook.At(i), c.Source()+"\nmore")
				require.NoError(t, err)
				require.True(t, changed)
				after := string(e.Bytes())
				cellText := string(c.JSON())
				start := strings.Index(before, cellText)
				require.GreaterOrEqual(t, start, 0)
				if strings.Count(before, cellText) > 1 {
					continue // empty twins: where the edit is cannot be told
				}
				require.Equal(t, before[:start], after[:start])
				require.True(t, strings.HasSuffix(after, before[start+len(cellText):]))
				require.Equal(t, c.Source()+"\nmore", parse(t, after).Cell(i).Source())
			}
		})
	}
}

// An edit and its opposite leave the file as it was, the mark included.
func TestEditAndBack(t *testing.T) {
	t.Parallel()
	for name, data := range corpus(t) {
		if name == "odd-white-space" || name == "odd-splits" || name == "empty-cells" {
			continue // an array that was laid out or split oddly comes back as nbformat writes it
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := parse(t, string(data))
			if d.UpgradedFrom() != 0 {
				d.Upgrade()
				d = parse(t, string(d.Bytes()))
			}
			before := string(d.Bytes())
			for i, c := range d.Cells() {
				was := c.Source()
				_, err := d.SetSource(notebook.At(i), was+"\nlast line")
				require.NoError(t, err)
				require.NotEqual(t, before, string(d.Bytes()))
				_, err = d.SetSource(notebook.At(i), was)
				require.NoError(t, err)
			}
			require.Equal(t, before, string(d.Bytes()))
		})
	}
}

func TestNewNotebookIsEmpty45(t *testing.T) {
	t.Parallel()
	d := notebook.New()
	require.Equal(t, "{\n \"cells\": [],\n \"metadata\": {},\n \"nbformat\": 4,\n \"nbformat_minor\": 5\n}\n", string(d.Bytes()))
	major, minor := d.Version()
	require.Equal(t, []int{4, 5}, []int{major, minor})
	require.Empty(t, d.Text())
	require.Empty(t, d.Validate())
}

func TestHardFailures(t *testing.T) {
	t.Parallel()
	const rest = `"metadata": {}, "nbformat": 4, "nbformat_minor": 4}`
	for _, tt := range []struct {
		name, data string
		kind       error
		message    string
	}{
		{"empty", "", notebook.ErrInvalidJSON, "Invalid JSON in notebook: expected a value, found end of file (line 1, column 1)"},
		{"not JSON", "{\n 'cells': []}", notebook.ErrInvalidJSON, `Invalid JSON in notebook: expected a member name in quotes, found '\'' (line 2, column 2)`},
		{"cut off", `{"cells": [{"cell_type": "code", "source": "x`, notebook.ErrInvalidJSON, "Invalid JSON in notebook: unterminated string (line 1, column 46)"},
		{"trailing text", `{"cells": []} x`, notebook.ErrInvalidJSON, "Invalid JSON in notebook: expected the end of the file, found 'x' (line 1, column 15)"},
		{"trailing comma", `{"cells": [],}`, notebook.ErrInvalidJSON, "Invalid JSON in notebook: expected a member name in quotes, found '}' (line 1, column 14)"},
		{"control character", "{\"cells\": \"a\nb\"}", notebook.ErrInvalidJSON, `Invalid JSON in notebook: control character '\n' in a string (line 1, column 13)`},
		{"not UTF-8", "{\"cells\": [\"\xff\"]}", notebook.ErrInvalidJSON, "Invalid JSON in notebook: not UTF-8 (line 1, column 13)"},
		{"UTF-16", "\xff\xfe{\x00", notebook.ErrInvalidJSON, "Invalid JSON in notebook: the file is UTF-16, notebooks are UTF-8"},
		{"array", `[]`, notebook.ErrStructure, "Invalid notebook structure (expected object)"},
		{"string", `"x"`, notebook.ErrStructure, "Invalid notebook structure (expected object)"},
		{"no cells", `{` + rest, notebook.ErrStructure, "Invalid notebook structure (missing cells array)"},
		{"cells is an object", `{"cells": {}, ` + rest, notebook.ErrStructure, "Invalid notebook structure (missing cells array)"},
		{"cells is null", `{"cells": null, ` + rest, notebook.ErrStructure, "Invalid notebook structure (missing cells array)"},
		{"cell is a string", `{"cells": ["x"], ` + rest, notebook.ErrCell, "Invalid notebook cell 0: expected an object, found a string"},
		{"cell is null", `{"cells": [{"cell_type": "raw"}, null], ` + rest, notebook.ErrCell, "Invalid notebook cell 1: expected an object, found null"},
		{"no cell type", `{"cells": [{}], ` + rest, notebook.ErrCell, "Invalid notebook cell 0: cell_type is missing"},
		{"cell type is a number", `{"cells": [{"cell_type": 1}], ` + rest, notebook.ErrCell, "Invalid notebook cell 0: cell_type is a number"},
		{"unknown cell type", `{"cells": [{"cell_type": "heading"}], ` + rest, notebook.ErrCell, `Invalid notebook cell 0: cell_type is "heading", expected code, markdown or raw`},
		{"too new", `{"cells": [], "metadata": {}, "nbformat": 5, "nbformat_minor": 0}`, notebook.ErrVersion, "unsupported nbformat: nbformat 5 is newer than 4"},
		{"too old", `{"worksheets": [], "nbformat": 2}`, notebook.ErrVersion, "unsupported nbformat: nbformat 2 is older than 3"},
		{"worksheets is no array", `{"worksheets": 1, "nbformat": 3}`, notebook.ErrStructure, "Invalid notebook structure (missing cells array)"},
		{"worksheet without cells", `{"worksheets": [{}], "nbformat": 3}`, notebook.ErrStructure, "Invalid notebook structure (missing cells array in worksheet 0)"},
		{"unknown old cell", `{"worksheets": [{"cells": [{"cell_type": "x"}]}], "nbformat": 3}`, notebook.ErrCell, `Invalid notebook cell 0: cell_type is "x", expected code, markdown, raw, heading or html`},
		{"old cell is a number", `{"worksheets": [{"cells": [1]}], "nbformat": 3}`, notebook.ErrCell, `Invalid notebook cell 0: expected an object, found a number`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d, err := notebook.Parse([]byte(tt.data))
			require.Nil(t, d)
			require.ErrorIs(t, err, tt.kind)
			require.EqualError(t, err, tt.message)
			problems := notebook.ValidBytes([]byte(tt.data))
			require.Len(t, problems, 1)
			require.Equal(t, tt.message, problems[0].Reason)
		})
	}
}

func TestFailuresNameTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	missing := filepath.Join(dir, "missing.ipynb")
	_, err := notebook.Open(t.Context(), missing)
	require.ErrorIs(t, err, notebook.ErrNotFound)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.EqualError(t, err, "Notebook not found: "+missing)
	for name, tt := range map[string]struct{ data, message string }{
		"json":      {"x", "Invalid JSON in notebook: %s: expected a value"},
		"object":    {"[]", "Invalid notebook structure (expected object): %s"},
		"structure": {"{}", "Invalid notebook structure (missing cells array): %s"},
		"cell":      {`{"cells": [1]}`, "Invalid notebook cell 0 in %s: "},
	} {
		path := filepath.Join(dir, name+".ipynb")
		writeFile(t, path, tt.data)
		_, err := notebook.Open(t.Context(), path)
		require.ErrorContains(t, err, fmt.Sprintf(tt.message, path))
		var e *notebook.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, path, e.Path)
	}
	f, err := notebook.OpenOrNew(t.Context(), missing)
	require.NoError(t, err)
	_, err = f.ApplyText("x", nil)
	require.EqualError(t, err, "Invalid notebook editable representation for "+missing+
		`: expected first line to be "# %% [code] cell:0", "# %% [markdown] cell:0", or "# %% [raw] cell:0".`)
}

// What the scanner takes and refuses is what encoding/json does, but for NaN
// and the infinities, and for UTF-8, which encoding/json repairs.
func TestScannerAgreesWithEncodingJSON(t *testing.T) {
	t.Parallel()
	for _, value := range []string{
		`0`, `-0`, `01`, `-`, `1.`, `.5`, `1.5`, `1e`, `1e5`, `1E+5`, `1e-`, `+1`, `0x1`, `1_0`, `truE`, `true`, `tru`, `false`, `null`, `nul`,
		`""`, `"\u12"`, `"\u12g4"`, `"\u1234"`, `"\x"`, `"\`, `"`, `"\"`, `"a\\"`, `"\/\b\f\n\r\t"`, "\"\t\"", "\"\x7f\"", "\"\u2028\"",
		`[]`, `[`, `]`, `[1]`, `[1,]`, `[,1]`, `[1 2]`, `[1,2`, `{}`, `{`, `{"a"}`, `{"a":}`, `{"a":1}`, `{"a":1,}`, `{"a":1 "b":2}`, `{1:2}`,
		`{"a":{"b":[{}]}}`, `[[[[]]]]`, `[}`, `{]`, ` [ 1 , { "a" : [ ] } ] `, "[\v]", "[\u00a01]", `"12345678`, `"1234567\"`, `"12345678\u00e9abcdefgh"`,
		"", " ", "//", "[1]/**/", "\x00",
	} {
		text := `{"cells": [], "x": ` + value + `}`
		_, err := notebook.Parse([]byte(text))
		require.Equal(t, json.Valid([]byte(text)), err == nil, "%q: %v", value, err)
	}
	for _, value := range []string{`NaN`, `Infinity`, `-Infinity`, `[NaN, {"a": -Infinity}]`} {
		parse(t, `{"cells": [], "x": `+value+`}`)
	}
	for _, value := range []string{`Nan`, `-NaN`, `Inf`, `+Infinity`} {
		_, err := notebook.Parse([]byte(`{"cells": [], "x": ` + value + `}`))
		require.ErrorIs(t, err, notebook.ErrInvalidJSON)
	}
}

func TestDepthIsBounded(t *testing.T) {
	t.Parallel()
	deep := func(n int) string {
		return `{"cells": [], "x": ` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`
	}
	parse(t, deep(9000))
	_, err := notebook.Parse([]byte(deep(1 << 20)))
	require.ErrorContains(t, err, "nested deeper than 10000")
}

func TestOfSeveralMembersTheLastCounts(t *testing.T) {
	t.Parallel()
	d := parse(t, string(corpus(t)["duplicate-names"]))
	require.Equal(t, 1, d.Len())
	require.Equal(t, notebook.Code, d.Cell(0).Type())
	require.Equal(t, "b", d.Cell(0).Source())
	value, ok := d.Metadata("a")
	require.True(t, ok)
	require.Equal(t, "2", string(value))
}

func TestReadingACell(t *testing.T) {
	t.Parallel()
	d := parse(t, `{"cells": [
		{"cell_type": "code", "id": "x", "execution_count": 7, "metadata": {"tags": ["a", 1, "b"], "n": {"deep": 1.0}},
		 "outputs": [{"output_type": "stream", "name": "stdout", "text": ["a\n", "b"]}], "source": ["1\n", "2"]},
		{"cell_type": "raw", "source": "r", "metadata": 1},
		{"cell_type": "markdown"}
	], "metadata": {"kernelspec": {"name": "python3", "language": "Python"}}, "nbformat": 4, "nbformat_minor": 5}`)
	c := d.Cell(0)
	require.Equal(t, "x", c.ID())
	require.Equal(t, "1\n2", c.Source())
	count, ok := c.ExecutionCount()
	require.True(t, ok)
	require.Equal(t, 7, count)
	require.Equal(t, []string{"a", "b"}, c.Tags())
	require.True(t, c.HasTag("b"))
	require.False(t, c.HasTag("c"))
	deep, ok := c.Metadata("n", "deep")
	require.True(t, ok)
	require.Equal(t, "1.0", string(deep))
	_, ok = c.Metadata("n", "deep", "er")
	require.False(t, ok)
	require.Equal(t, 1, c.OutputCount())
	require.Empty(t, cmp.Diff([]notebook.Output{notebook.NewStream("stdout", "a\nb")}, c.Outputs()))
	require.Equal(t, "python", d.Language())
	require.Equal(t, "python3", d.KernelName())
	raw := d.Cell(1)
	require.Empty(t, raw.Tags())
	require.Zero(t, raw.OutputCount())
	require.Nil(t, raw.Outputs())
	require.Empty(t, d.Cell(2).Source())
	require.Empty(t, d.Cell(2).ID())
	_, ok = d.Cell(2).ExecutionCount()
	require.False(t, ok)
	require.JSONEq(t, `{"cell_type": "markdown"}`, string(d.Cell(2).JSON()))
}

// largeNotebook returns a notebook with that many images of 1.5 MiB.
func largeNotebook(images int) []byte {
	image := strings.Repeat("iVBORw0KGgoAAAANSUhEUgAA", 1<<16) // 1.5 MiB
	var b strings.Builder
	b.WriteString(`{"cells": [`)
	for i := range images {
		if i > 0 {
			b.WriteString(",\n")
		}
		fmt.Fprintf(&b, `{"cell_type": "code", "execution_count": 1, "id": "c%d", "metadata": {}, "outputs": [{"output_type": "display_data", "data": {"image/png": %q}, "metadata": {}}], "source": ["a\n", "b\n", "c"]}`, i, image)
	}
	b.WriteString(`], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}`)
	return []byte(b.String())
}

// A notebook of a hundred megabytes is mostly outputs. Showing its first lines
// must not copy them: what is allocated does not grow with them. The test is
// not parallel, for it measures what the whole process allocates.
func TestShowingALargeNotebookCopiesNothing(t *testing.T) {
	data := largeNotebook(8)
	sel, err := notebook.ParseSelector("1-20")
	require.NoError(t, err)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	d, err := notebook.Parse(data)
	require.NoError(t, err)
	lines := 0
	for range d.Select(sel) {
		lines++
	}
	runtime.ReadMemStats(&after)
	require.Equal(t, 20, lines)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(100_000))
}

// BenchmarkShow is the work of showing the first lines of a notebook of
// 100 MiB, beyond reading the file.
func BenchmarkShow(b *testing.B) {
	data := largeNotebook(66)
	sel, err := notebook.ParseSelector("1-20")
	require.NoError(b, err)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		d, err := notebook.Parse(data)
		require.NoError(b, err)
		for range d.Select(sel) {
		}
	}
}

// BenchmarkApply is the work of changing one line of it and writing it.
func BenchmarkApply(b *testing.B) {
	data := largeNotebook(66)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		d, err := notebook.Parse(data)
		require.NoError(b, err)
		_, err = d.ApplyText(strings.Replace(d.Text(), "a\n", "A\n", 1), nil)
		require.NoError(b, err)
		_, err = d.WriteTo(io.Discard)
		require.NoError(b, err)
	}
}
