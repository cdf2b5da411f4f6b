package console

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// TestReadInput reads standard input to its end, within a bound.
func TestReadInput(t *testing.T) {
	t.Parallel()
	c, _, _ := testConsole(t, "one\ntwo")
	text, err := c.ReadInput()
	require.NoError(t, err)
	require.Equal(t, "one\ntwo", text)
	c.In = zeros{}
	_, err = c.ReadInput()
	require.EqualError(t, err, "more than 64 MiB")
}

// TestReadText reads a file that is there and has an end.
func TestReadText(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a.txt")
	require.NoError(t, os.WriteFile(path, []byte("text"), 0o600))
	text, err := ReadText(t.Context(), path)
	require.NoError(t, err)
	require.Equal(t, "text", string(text))
	_, err = ReadText(t.Context(), filepath.Join(dir, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = ReadText(t.Context(), dir)
	require.ErrorContains(t, err, "not a regular file")
	require.NoError(t, os.Truncate(path, MaxSource+1))
	_, err = ReadText(t.Context(), path)
	require.ErrorContains(t, err, "MiB")
}

// TestWriteJSON writes one line, with HTML as it is.
func TestWriteJSON(t *testing.T) {
	t.Parallel()
	c, stdout, _ := testConsole(t, "")
	require.NoError(t, c.WriteJSON(map[string]string{"a": "<b>\n"}))
	require.Equal(t, `{"a":"<b>\n"}`+"\n", stdout.String())
	require.ErrorContains(t, c.WriteJSON(func() {}), "write JSON: ")
}

// TestColours: a terminal has them, unless the environment says no.
func TestColours(t *testing.T) {
	t.Parallel()
	for env, want := range map[string]bool{"": true, "NO_COLOR=1": false, "NO_COLOR=": true, "TERM=dumb": false, "TERM=xterm": true} {
		c := New(strings.NewReader(""), zeroWriter{}, zeroWriter{}, []string{env})
		require.Equal(t, want, c.Colours(), env)
		require.False(t, c.Style(c.Out).Colour, "it is no terminal")
		c.Out.Terminal = true
		require.Equal(t, want, c.Style(c.Out).Colour, env)
	}
}

type zeroWriter struct{}

func (zeroWriter) Write(p []byte) (int, error) { return len(p), nil }
