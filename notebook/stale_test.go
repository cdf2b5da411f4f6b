package notebook_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/notebook"
)

func TestStaleOutputs(t *testing.T) {
	t.Parallel()
	edited := strings.Replace(ran(t, "a", "b").Text(), "a", "A", 1)
	t.Run("marked", func(t *testing.T) {
		t.Parallel()
		d := ran(t, "a", "b")
		before := string(d.Bytes())
		report := apply(t, d, edited)
		require.True(t, report.Cells[0].Stale)
		require.False(t, report.Cells[1].Stale)
		require.True(t, d.Cell(0).Stale())
		require.Equal(t, 1, d.Cell(0).OutputCount())
		require.Empty(t, d.Validate())
		require.True(t, parse(t, string(d.Bytes())).Cell(0).Stale(), "the mark is in the file")
		apply(t, d, strings.Replace(edited, "A", "AA", 1))
		require.True(t, d.Cell(0).Stale())
		apply(t, d, strings.Replace(edited, "A", "a", 1))
		require.False(t, d.Cell(0).Stale(), "the source is again what made the outputs")
		require.Equal(t, before, string(d.Bytes()))
	})
	t.Run("cleared", func(t *testing.T) {
		t.Parallel()
		d := ran(t, "a", "b")
		_, err := d.ApplyText(edited, &notebook.ApplyOptions{ClearOutputs: true})
		require.NoError(t, err)
		require.Zero(t, d.Cell(0).OutputCount())
		_, ok := d.Cell(0).ExecutionCount()
		require.False(t, ok)
		require.Equal(t, 1, d.Cell(1).OutputCount())
		require.False(t, d.Cell(0).Stale())
		require.Equal(t, notebook.StaleMark, d.Stale, "the option is for one call")
	})
	t.Run("kept", func(t *testing.T) {
		t.Parallel()
		d := ran(t, "a", "b")
		d.Stale = notebook.StaleKeep
		report := apply(t, d, edited)
		require.True(t, report.Cells[0].Stale)
		require.False(t, d.Cell(0).Stale())
		require.NotContains(t, string(d.Bytes()), "coppice")
		require.Equal(t, 1, d.Cell(0).OutputCount())
	})
	t.Run("without outputs", func(t *testing.T) {
		t.Parallel()
		d := build(t, code("a"))
		apply(t, d, "# %% [code] cell:0\nb")
		require.NotContains(t, string(d.Bytes()), "coppice")
	})
	t.Run("new outputs", func(t *testing.T) {
		t.Parallel()
		d := ran(t, "a", "b")
		apply(t, d, edited)
		require.NoError(t, d.SetOutputs(notebook.At(0), 9, notebook.NewStream("stdout", "A")))
		require.False(t, d.Cell(0).Stale())
		require.NotContains(t, string(d.Bytes()), "coppice")
	})
	t.Run("other type", func(t *testing.T) {
		t.Parallel()
		d := ran(t, "a", "b")
		apply(t, d, edited)
		apply(t, d, strings.Replace(d.Text(), "[code] cell:0", "[markdown] cell:0", 1))
		require.NotContains(t, string(d.Bytes()), "coppice")
	})
	t.Run("other metadata of ours", func(t *testing.T) {
		t.Parallel()
		d := ran(t, "a", "b")
		require.NoError(t, d.SetMetadata(notebook.At(0), 1, "coppice", "more"))
		apply(t, d, edited)
		apply(t, d, strings.Replace(edited, "A", "a", 1))
		value, _ := d.Cell(0).Metadata("coppice")
		require.JSONEq(t, `{"more": 1}`, string(value))
	})
}
