package pyenv_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/pyenv"
	"github.com/coppice-run/coppice/test/notfile"
)

// TestModuleIsNoFile: what is not a file is not a module, and does not affect the
// others.
func TestModuleIsNoFile(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "good.py"), []byte("x = 1\n"), 0o600))
	for _, kind := range notfile.Kinds {
		notfile.Make(t, kind, filepath.Join(dir, "odd.py"))
		notfile.AtOnce(t, func() {
			if found := pyenv.Modules(dir, ""); len(found) != 1 || found[0].Text != "x = 1\n" {
				t.Errorf("%s: %v", kind, found)
			}
		})
	}
}
