package notebook_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/notebook"
)

// rules is the notebook that the rules are shown on.
const rules = `{
 "cells": [
  {"cell_type": "markdown", "id": "m", "metadata": {"own": 1}, "source": ["# T\n", "text"]},
  {"cell_type": "code", "id": "c", "metadata": {"tags": ["t"]}, "execution_count": 7, "outputs": [{"output_type": "stream", "name": "stdout", "text": ["1\n"]}], "source": ["print(1)"]},
  {"cell_type": "raw", "id": "r", "metadata": {}, "source": []}
 ],
 "metadata": {"kept": true}, "nbformat": 4, "nbformat_minor": 5
}`

// The rules of notebooks as editable text, one by one. Elsewhere each is tested
// with all that can go wrong.
func TestTheRulesOfEditableText(t *testing.T) {
	t.Parallel()
	apply := func(t *testing.T, text string) *notebook.Document {
		t.Helper()
		d := parse(t, rules)
		_, err := d.ApplyText(text, nil)
		require.NoError(t, err)
		require.Empty(t, d.Validate())
		return d
	}
	t.Run("1: a notebook is shown as text with a marker before each cell", func(t *testing.T) {
		require.Equal(t, "# %% [markdown] cell:0\n# T\ntext\n# %% [code] cell:1\nprint(1)\n# %% [raw] cell:2", parse(t, rules).Text())
		require.True(t, notebook.IsPath("A.IPYNB"))
	})
	t.Run("2: line selectors, several too, select from that text; raw is the JSON", func(t *testing.T) {
		selected := func(s string) string {
			sel, err := notebook.ParseSelector(s)
			require.NoError(t, err)
			var lines []string
			for l := range parse(t, rules).Select(sel) {
				lines = append(lines, l.Text)
			}
			return strings.Join(lines, "|")
		}
		require.Equal(t, "# T|# %% [code] cell:1|print(1)", selected("2,4-5"))
		require.Equal(t, `{| "cells": [`, selected("raw:1-2"))
	})
	t.Run("3: a source is stored as lines that keep their newlines", func(t *testing.T) {
		require.Equal(t, []string{"a\n", "\n", "b"}, notebook.SplitLines("a\n\nb"))
		require.Equal(t, []string{"a\n"}, notebook.SplitLines("a\n"))
		require.Empty(t, notebook.SplitLines(""))
		require.Contains(t, string(apply(t, "# %% [code]\na\nb").Bytes()), "\"a\\n\",")
	})
	t.Run("4: text before the first marker is refused, a blank line too", func(t *testing.T) {
		for _, text := range []string{"x\n# %% [code] cell:0", "\n# %% [code] cell:0", "# %% [sql] cell:0", "# %%[code]"} {
			d := parse(t, rules)
			_, err := d.ApplyText(text, &notebook.ApplyOptions{Format: notebook.FormatCells})
			require.ErrorIs(t, err, notebook.ErrText, text)
			require.ErrorContains(t, err, `expected first line to be "# %% [code] cell:0", "# %% [markdown] cell:0", or "# %% [raw] cell:0"`)
			require.Equal(t, rules, string(d.Bytes()))
		}
	})
	t.Run("5: cell:N takes an unused cell along; the others are deleted, the order is the text's", func(t *testing.T) {
		d := apply(t, "# %% [code] cell:1\nprint(2)\n# %% [markdown] cell:0\n# T\ntext")
		require.Equal(t, []string{"c", "m"}, ids(d))
		require.Equal(t, []string{"t"}, d.Cell(0).Tags())
		require.Len(t, d.Cell(0).Outputs(), 1)
		own, _ := d.Cell(1).Metadata("own")
		require.Equal(t, "1", string(own))
		kept, _ := d.Metadata("kept")
		require.Equal(t, "true", string(kept))
	})
	t.Run("6: any other marker makes a new cell with empty metadata", func(t *testing.T) {
		d := apply(t, "# %% [code] cell:1\nprint(1)\n# %% [code] cell:1\na\n# %% [raw] cell:9\nb\n# %% [markdown]\nc")
		require.Equal(t, "c", d.Cell(0).ID())
		for _, c := range d.Cells()[1:] {
			require.NotContains(t, []string{"m", "c", "r", ""}, c.ID())
			meta, _ := c.Metadata()
			require.Equal(t, "{}", string(meta))
		}
	})
	t.Run("7: code has execution_count and outputs, markdown and raw have not", func(t *testing.T) {
		d := apply(t, "# %% [code] cell:0\nx\n# %% [markdown] cell:1\ny\n# %% [code]")
		require.Contains(t, string(d.Cell(0).JSON()), `"execution_count"`)
		require.Contains(t, string(d.Cell(0).JSON()), `"outputs"`)
		require.NotContains(t, string(d.Cell(1).JSON()), `"execution_count"`)
		require.NotContains(t, string(d.Cell(1).JSON()), `"outputs"`)
		require.Equal(t, []string{"t"}, d.Cell(1).Tags(), "the rest of the cell stays")
	})
	t.Run("8: a missing notebook starts as an empty 4.5; what is none fails hard", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "new.ipynb")
		_, err := notebook.Open(t.Context(), path)
		require.EqualError(t, err, "Notebook not found: "+path)
		f, err := notebook.OpenOrNew(t.Context(), path)
		require.NoError(t, err)
		_, err = f.ApplyText("# %% [code]\nx", nil)
		require.NoError(t, err)
		save(t, f)
		major, minor := f.Version()
		require.Equal(t, []int{4, 5}, []int{major, minor})
		for data, message := range map[string]string{
			"{": "Invalid JSON in notebook: " + path, "[]": "Invalid notebook structure (expected object): " + path,
			`{"cells": 1}`: "Invalid notebook structure (missing cells array): " + path, `{"cells": [1]}`: "Invalid notebook cell 0 in " + path,
		} {
			writeFile(t, path, data)
			_, err := notebook.Open(t.Context(), path)
			require.ErrorContains(t, err, message)
		}
	})
}
