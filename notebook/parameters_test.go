package notebook_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/notebook"
)

func TestSetParameters(t *testing.T) {
	t.Parallel()
	tagged := func(source string, tags ...string) notebook.NewCell {
		return notebook.NewCell{Source: source, Tags: tags}
	}
	d := build(t, code("a"), tagged("x = 1", notebook.TagParameters), code("b"))
	c, err := d.SetParameters(
		notebook.Parameter{Name: "x", Value: 2}, notebook.Parameter{Name: "s", Value: "q\"\\\n\té\x00\u2028😀"},
		notebook.Parameter{Name: "l", Value: []any{nil, true, false, 1.5, map[string]any{"k": "v"}}},
		notebook.Parameter{Name: "n", Value: json.RawMessage(`[123456789012345678901, 1.50, NaN, -Infinity, Infinity]`)},
	)
	require.NoError(t, err)
	require.Equal(t, "# Parameters\nx = 2\ns = \"q\\\"\\\\\\n\\té\\x00\\u2028😀\"\nl = [None, True, False, 1.5, {\"k\": \"v\"}]\n"+
		"n = [123456789012345678901, 1.50, float('nan'), float('-inf'), float('inf')]\n", c.Source())
	require.Equal(t, 2, d.Index(c), "below the cell tagged parameters")
	require.Equal(t, []string{notebook.TagInjected}, c.Tags())
	require.NoError(t, d.SetOutputs(notebook.At(2), 1, notebook.NewStream("stdout", "x")))
	again, err := d.SetParameters(notebook.Parameter{Name: "x", Value: 3})
	require.NoError(t, err)
	require.Equal(t, c, again)
	require.Equal(t, "# Parameters\nx = 3\n", again.Source())
	require.Zero(t, again.OutputCount())
	require.Equal(t, 4, d.Len())
	none, err := d.SetParameters()
	require.NoError(t, err)
	require.Nil(t, none)
	require.Equal(t, []string{"a", "x = 1", "b"}, sources(d))
	none, err = d.SetParameters()
	require.NoError(t, err)
	require.Nil(t, none)

	top := build(t, code("a"))
	c, err = top.SetParameters(notebook.Parameter{Name: "é_1", Value: nil})
	require.NoError(t, err)
	require.Zero(t, top.Index(c))
	require.Empty(t, top.Validate())
}

func TestParametersThatAreRefused(t *testing.T) {
	t.Parallel()
	d := build(t, code("a"))
	for _, params := range [][]notebook.Parameter{
		{{Name: ""}},
		{{Name: "1x"}},
		{{Name: "a b"}},
		{{Name: "a.b"}},
		{{Name: "class"}},
		{{Name: "x = 1; y"}},
		{{Name: "x"}, {Name: "x"}},
		{{Name: "x", Value: func() {}}},
	} {
		_, err := d.SetParameters(params...)
		require.ErrorIs(t, err, notebook.ErrArgument)
	}
	require.Equal(t, 1, d.Len())
	require.NoError(t, d.SetNotebookMetadata("R", "language_info", "name"))
	_, err := d.SetParameters(notebook.Parameter{Name: "x"})
	require.ErrorContains(t, err, "parameters are for Python notebooks, this one is r")
	odd := build(t, notebook.NewCell{Type: notebook.Markdown, Tags: []string{notebook.TagInjected}})
	_, err = odd.SetParameters(notebook.Parameter{Name: "x"})
	require.ErrorIs(t, err, notebook.ErrArgument)
}
