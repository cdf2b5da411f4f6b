package notebook

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/notebook"
)

// TestSavedByOthersDuringARunInPlace: whatever is edited in the meantime stays, as often as
// it is, and so does what the cells show; what is no notebook any more is left alone.
func TestSavedByOthersDuringARunInPlace(t *testing.T) {
	t.Parallel()
	f := open(t, book)
	m := newMerging(f)
	show := func(cell int, text string) {
		require.NoError(t, f.SetOutputs(notebook.At(cell), 7, notebook.NewStream("stdout", text)))
	}
	replace := func(old, with string) {
		data, err := os.ReadFile(f.Path)
		require.NoError(t, err)
		require.Contains(t, string(data), old)
		require.NoError(t, os.WriteFile(f.Path, []byte(strings.Replace(string(data), old, with, 1)), 0o600))
	}
	save := func() *notebook.File {
		written, err := m.save(t.Context())
		require.NoError(t, err)
		require.True(t, written)
		now, err := notebook.Open(t.Context(), f.Path)
		require.NoError(t, err)
		require.Empty(t, now.Validate())
		return now
	}
	show(1, "first\n")
	save()
	require.False(t, m.merged)

	replace("# Prices", "# Costs")
	show(1, "second\n")
	now := save()
	require.True(t, m.merged)
	require.Contains(t, now.Cell(0).Source(), "# Costs")
	require.Equal(t, "second\n", now.Cell(1).Outputs()[0].Text)

	show(2, "third\n")
	now = save() // without another edit
	require.Equal(t, "third\n", now.Cell(2).Outputs()[0].Text)
	require.Contains(t, now.Cell(0).Source(), "# Costs")

	replace("# Costs", "# Gains")
	show(2, "fourth\n")
	now = save()
	require.Contains(t, now.Cell(0).Source(), "# Gains")
	require.Equal(t, []string{"second\n", "fourth\n"}, []string{now.Cell(1).Outputs()[0].Text, now.Cell(2).Outputs()[0].Text})
	require.Zero(t, m.conflicts)
	require.Equal(t, 3, now.Len())

	f = open(t, book)
	m = newMerging(f)
	require.NoError(t, os.WriteFile(f.Path, []byte("{"), 0o600))
	show(1, "lost\n")
	_, err := m.save(t.Context())
	require.ErrorIs(t, err, notebook.ErrChanged)
	data, err := os.ReadFile(f.Path)
	require.NoError(t, err)
	require.Equal(t, "{", string(data))
}
