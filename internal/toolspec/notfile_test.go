package toolspec_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/toolspec"
	"github.com/coppice-run/coppice/test/notfile"
)

// TestNoFile: a tool whose files are not files is a broken one, and that is said at
// once.
func TestNoFile(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "a"), 0o700))
	for _, kind := range notfile.Kinds {
		path := filepath.Join(dir, "a", toolspec.FileName)
		notfile.Make(t, kind, path)
		notfile.AtOnce(t, func() {
			entries, err := toolspec.Discover(t.Context(), dir)
			if err != nil || len(entries) != 1 {
				t.Errorf("%v %v", entries, err)
				return
			}
			var broken *toolspec.Error
			if !errors.As(entries[0].Err, &broken) || !strings.Contains(broken.Error(), "it is "+string(kind)+", not a regular file; ") {
				t.Errorf("%s: %v", kind, entries[0].Err)
			}
		})
		env := filepath.Join(dir, toolspec.EnvFile)
		notfile.Make(t, kind, env)
		notfile.AtOnce(t, func() {
			_, err := toolspec.Environment(t.Context(), &toolspec.Tool{ID: "a"}, dir, nil, nil)
			if err == nil || !strings.Contains(err.Error(), env+": is "+string(kind)) {
				t.Errorf("%s: %v", kind, err)
			}
		})
		require.NoError(t, os.RemoveAll(env))
	}
}

// TestTooLarge: so is one whose tool.json has more than is read.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, toolspec.FileName)
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, os.Truncate(path, 1<<40))
	e := toolspec.Read(t.Context(), dir)
	require.ErrorContains(t, e.Err, "it holds 1024 GiB, and at most 4 MiB are read")
}
