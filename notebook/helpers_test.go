package notebook_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/notebook"
)

// corpus returns the notebooks in testdata/corpus by name.
func corpus(t testing.TB) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob("testdata/corpus/*.ipynb")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(paths), 40)
	files := make(map[string][]byte, len(paths))
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		files[strings.TrimSuffix(filepath.Base(path), ".ipynb")] = data
	}
	return files
}

func parse(t require.TestingT, data string) *notebook.Document {
	d, err := notebook.Parse([]byte(data))
	require.NoError(t, err)
	return d
}

// build returns a 4.5 notebook of cells, with ids a, b, c and so on.
func build(t require.TestingT, cells ...notebook.NewCell) *notebook.Document {
	d := notebook.New()
	for i := range cells {
		if cells[i].ID == "" {
			cells[i].ID = string(rune('a' + i))
		}
	}
	_, err := d.Append(cells...)
	require.NoError(t, err)
	return d
}

func code(source string) notebook.NewCell { return notebook.NewCell{Source: source} }

func markdown(source string) notebook.NewCell {
	return notebook.NewCell{Type: notebook.Markdown, Source: source}
}

// ran returns a notebook of code cells that were run: each has its source as
// an output.
func ran(t require.TestingT, sources ...string) *notebook.Document {
	var cells []notebook.NewCell
	for _, s := range sources {
		cells = append(cells, code(s))
	}
	d := build(t, cells...)
	for i, s := range sources {
		require.NoError(t, d.SetOutputs(notebook.At(i), i+1, notebook.NewStream("stdout", s)))
	}
	return d
}

// sources returns the sources of all cells.
func sources(d *notebook.Document) []string {
	out := []string{}
	for _, c := range d.Cells() {
		out = append(out, c.Source())
	}
	return out
}

func ids(d *notebook.Document) []string {
	out := []string{}
	for _, c := range d.Cells() {
		out = append(out, c.ID())
	}
	return out
}

func types(d *notebook.Document) []notebook.CellType {
	out := []notebook.CellType{}
	for _, c := range d.Cells() {
		out = append(out, c.Type())
	}
	return out
}

// sourceGen draws sources that a text format has trouble with: lines like
// markers, odd line ends, quotes, control characters.
func sourceGen() *rapid.Generator[string] {
	line := rapid.OneOf(
		rapid.SampledFrom([]string{
			"", " ", "x = 1", "# comment", "# %%", "# %% title", "# %% [code]", "# %% [code] cell:0", "# %%% [markdown] cell:12",
			"# %%%% [raw]", "# %% [raw]\r", "# %% [code] ", "#%% [code]", "# %% [code] cell:", "%matplotlib inline", "!ls",
			"\r", "tab\tbell\a", "é中😀", "\ufeff", `back\slash "quoted" 'x'`, `"""`, "'''", "\u2028",
		}),
		rapid.String(),
	)
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(line, 0, 6).Draw(t, "lines"), "\n")
	})
}

func cellGen() *rapid.Generator[notebook.NewCell] {
	return rapid.Custom(func(t *rapid.T) notebook.NewCell {
		return notebook.NewCell{
			Type:   rapid.SampledFrom([]notebook.CellType{notebook.Code, notebook.Markdown, notebook.Raw}).Draw(t, "type"),
			Source: sourceGen().Draw(t, "source"),
		}
	})
}

// documentGen draws notebooks of up to eight cells, some with outputs.
func documentGen() *rapid.Generator[*notebook.Document] {
	return rapid.Custom(func(t *rapid.T) *notebook.Document {
		d := notebook.New()
		_, err := d.Append(rapid.SliceOfN(cellGen(), 0, 8).Draw(t, "cells")...)
		require.NoError(t, err)
		for i, c := range d.Cells() {
			if c.Type() == notebook.Code && rapid.Bool().Draw(t, "ran") {
				require.NoError(t, d.SetOutputs(notebook.At(i), i+1, notebook.NewStream("stdout", "out "+c.Source())))
			}
		}
		return parse(t, string(d.Bytes()))
	})
}
