package term_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/term"
)

// TestNoTerminal asks what a test can hold: a pipe, a file, a buffer.
func TestNoTerminal(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	for name, out := range map[string]any{"pipe": w, "device": null, "buffer": &bytes.Buffer{}, "nothing": nil} {
		require.False(t, term.IsTerminal(out), name)
		require.Equal(t, term.DefaultWidth, term.Width(out), name)
	}
}
