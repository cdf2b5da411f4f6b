//go:build linux || darwin

package files_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/workspace/files"
)

// TestAttributes stay with a file until it is replaced, and come into copies.
func TestAttributes(t *testing.T) {
	t.Parallel()
	f, _ := open(t, files.Options{})
	write := func(attributes map[string]string) error {
		_, err := f.WriteBytes(t.Context(), "a/b", []byte("x"), files.WriteOptions{Attributes: attributes})
		return err
	}
	has := func(f *files.Folder, prefix string, want map[string]string) {
		t.Helper()
		got, err := f.Attributes("a/b", prefix)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	long := strings.Repeat("v", 2000)
	err := write(map[string]string{"app.one": "1", "app.long": long, "other": ""})
	if errors.Is(err, files.ErrAttributes) { // this file system has none
		_, err := f.Stat("a/b")
		require.ErrorIs(t, err, fs.ErrNotExist)
		return
	}
	require.NoError(t, err)
	has(f, "app.", map[string]string{"app.one": "1", "app.long": long})
	has(f, "", map[string]string{"app.one": "1", "app.long": long, "other": ""})
	has(f, "nobody's", map[string]string{})

	to, _ := open(t, files.Options{})
	require.NoError(t, f.CopyTo(t.Context(), to))
	has(to, "", map[string]string{"app.one": "1", "app.long": long, "other": ""})

	_, err = f.Move("a/b", "c", files.MoveOptions{})
	require.NoError(t, err)
	got, err := f.Attributes("c", "other")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"other": ""}, got)

	require.NoError(t, write(map[string]string{"app.two": "2"}))
	require.NoError(t, write(map[string]string{"app.three": "3"}))
	has(f, "", map[string]string{"app.three": "3"})
	require.ErrorIs(t, write(map[string]string{"large": strings.Repeat("v", 1<<20)}), files.ErrAttributes)
	has(f, "", map[string]string{"app.three": "3"})
	_, err = f.Attributes("../b", "")
	require.ErrorIs(t, err, files.ErrOutside)
	got, err = f.Attributes("a", "")
	require.NoError(t, err)
	require.Empty(t, got, "a directory has none")
}
