package notebook_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/notebook"
)

func TestMetadata(t *testing.T) {
	t.Parallel()
	d := parse(t, threeCells)
	require.NoError(t, d.SetMetadata(notebook.At(0), json.RawMessage(`{"b": 1.50}`), "a", "deep"))
	value, ok := d.Cell(0).Metadata("a")
	require.True(t, ok)
	require.JSONEq(t, `{"deep": {"b": 1.50}}`, string(value))
	require.Contains(t, string(value), "1.50")
	require.NoError(t, d.SetMetadata(notebook.ByID("bbb"), "<&>é", "text"))
	require.Contains(t, string(d.Bytes()), `"<&>é"`)
	require.NoError(t, d.SetMetadata(notebook.At(0), 1, "custom", "now", "an object"))
	removed, err := d.RemoveMetadata(notebook.At(0), "a", "deep")
	require.NoError(t, err)
	require.True(t, removed)
	removed, err = d.RemoveMetadata(notebook.At(0), "a", "deep")
	require.NoError(t, err)
	require.False(t, removed)
	require.NoError(t, d.SetMetadata(notebook.At(2), map[string]any{}))
	whole, _ := d.Cell(2).Metadata()
	require.Equal(t, "{}", string(whole))
	require.Empty(t, parse(t, string(d.Bytes())).Validate())

	require.NoError(t, d.SetNotebookMetadata([]int{1, 2}, "new", "list"))
	value, _ = d.Metadata("new")
	require.JSONEq(t, `{"list": [1, 2]}`, string(value))
	require.True(t, d.RemoveNotebookMetadata("new"))
	require.False(t, d.RemoveNotebookMetadata("new"))
	require.False(t, d.RemoveNotebookMetadata())

	require.ErrorIs(t, d.SetMetadata(notebook.At(0), func() {}, "x"), notebook.ErrArgument)
	require.ErrorIs(t, d.SetMetadata(notebook.At(0), 1), notebook.ErrArgument)
	require.ErrorIs(t, d.SetMetadata(notebook.At(9), 1, "x"), notebook.ErrNoCell)
	require.ErrorIs(t, d.SetNotebookMetadata("x"), notebook.ErrArgument)
	_, err = d.RemoveMetadata(notebook.At(9), "x")
	require.ErrorIs(t, err, notebook.ErrNoCell)
}

// Metadata that is set to what it is, or removed where it is not, is no edit.
func TestSettingTheSameIsNoEdit(t *testing.T) {
	t.Parallel()
	d := parse(t, threeCells)
	require.NoError(t, d.SetMetadata(notebook.At(0), json.RawMessage(`[ "t" ]`), "tags"))
	require.NoError(t, d.SetNotebookMetadata(json.RawMessage(`[1.50]`), "k"))
	require.NoError(t, d.SetTags(notebook.At(0), "t"))
	require.NoError(t, d.AddTags(notebook.At(0), "t"))
	require.NoError(t, d.RemoveTags(notebook.At(0), "u"))
	require.NoError(t, d.Move(notebook.At(1), 1))
	require.NoError(t, d.Delete())
	_, err := d.Insert(0)
	require.NoError(t, err)
	changed, err := d.SetSource(notebook.At(1), "# Title\ntext")
	require.NoError(t, err)
	require.False(t, changed)
	changed, err = d.SetType(notebook.At(1), notebook.Markdown)
	require.NoError(t, err)
	require.False(t, changed)
	require.Zero(t, d.AddMissingIDs())
	require.False(t, d.Upgrade())
	require.False(t, d.Edited())
	require.Equal(t, threeCells, string(d.Bytes()))
}

func TestTags(t *testing.T) {
	t.Parallel()
	d := build(t, code("a"))
	require.NoError(t, d.AddTags(notebook.At(0), "x", "y"))
	require.NoError(t, d.AddTags(notebook.At(0), "y", "z"))
	require.Equal(t, []string{"x", "y", "z"}, d.Cell(0).Tags())
	require.NoError(t, d.RemoveTags(notebook.At(0), "y"))
	require.Equal(t, []string{"x", "z"}, d.Cell(0).Tags())
	require.ErrorIs(t, d.AddTags(notebook.At(0), "a,b"), notebook.ErrArgument)
	require.NoError(t, d.SetTags(notebook.At(0)))
	require.Empty(t, d.Cell(0).Tags())
	require.False(t, has(d.Cell(0), "tags"))
	for _, f := range []func() error{
		func() error { return d.SetTags(notebook.At(9)) },
		func() error { return d.AddTags(notebook.At(9)) },
		func() error { return d.RemoveTags(notebook.At(9)) },
	} {
		require.ErrorIs(t, f(), notebook.ErrNoCell)
	}
}

// In a notebook whose writer escapes everything outside ASCII, so does what is
// added.
func TestAddedTextIsEscapedAsTheWriterDoes(t *testing.T) {
	t.Parallel()
	d := parse(t, string(corpus(t)["ascii-escapes"]))
	require.NoError(t, d.SetMetadata(notebook.At(0), json.RawMessage(`{"clé": ["é😀", "\u00E9"]}`), "ключ"))
	_, err := d.SetSource(notebook.At(1), "é中😀\x7f")
	require.NoError(t, err)
	_, err = d.Append(markdown("ü"))
	require.NoError(t, err)
	text := string(d.Bytes())
	for _, want := range []string{`"\u043a\u043b\u044e\u0447"`, `"cl\u00e9"`, `"\u00e9\ud83d\ude00"`, `"\u00E9"`, `"\u00e9\u4e2d\ud83d\ude00\u007f"`, `"\u00fc"`} {
		require.Contains(t, text, want)
	}
	for _, r := range text {
		require.Less(t, r, rune(0x80))
	}
	again := parse(t, text)
	require.Equal(t, "é中😀\x7f", again.Cell(1).Source())
	value, ok := again.Cell(0).Metadata("ключ", "clé")
	require.True(t, ok)
	require.JSONEq(t, `["é😀", "é"]`, string(value))
}
