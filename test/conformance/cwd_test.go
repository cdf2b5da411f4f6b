//go:build linux

package conformance_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/test/backends"
)

// TestAWorkingDirectoryThatIsMadeAgain: the kernel stays in the one that was deleted,
// where no file can be made; the error says so, and how to get to the new one.
func TestAWorkingDirectoryThatIsMadeAgain(t *testing.T) {
	t.Parallel()
	for _, backend := range []string{backends.Gateway, backends.Runner} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			held(t, backend)
			cwd, err := filepath.EvalSymlinks(t.TempDir())
			require.NoError(t, err)
			cwd = filepath.Join(cwd, "work")
			require.NoError(t, os.Mkdir(cwd, 0o700))
			s := plain(t, backend).Session("cwd", coppice.In(cwd))
			run(t, s, step{cells: []string{"x = 1"}})
			require.NoError(t, os.Remove(cwd))
			r := run(t, s, step{cells: []string{"open('new.txt', 'w')"}})
			require.Equal(t, "the working directory of this session was deleted: "+cwd, r.Cells[0].Error.Hint)
			require.NoError(t, os.Mkdir(cwd, 0o700))
			for _, code := range []string{"open('new.txt', 'w')", "import os; os.getcwd()"} {
				r = run(t, s, step{cells: []string{code}})
				require.Equal(t, "the working directory of this session was deleted, and made again since: os.chdir('"+cwd+"') enters the new one", r.Cells[0].Error.Hint)
				require.Contains(t, r.Text, "hint: ")
			}
			run(t, s, step{cells: []string{"os.chdir('" + cwd + "'); open('new.txt', 'w').close()"}})
			require.FileExists(t, filepath.Join(cwd, "new.txt"))
		})
	}
}
