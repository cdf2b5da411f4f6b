//go:build unix

package term_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/term"
)

func TestReaderGone(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	require.False(t, term.ReaderGone(w))
	require.NoError(t, r.Close())
	require.True(t, term.ReaderGone(w))
	require.NoError(t, w.Close())
	require.False(t, term.ReaderGone(w), "a closed file tells nothing")

	file, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	require.False(t, term.ReaderGone(file), "a file needs no reader")
	require.NoError(t, file.Close())
}
