//go:build linux

package runner_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel/runner"
	"github.com/coppice-run/coppice/internal/pyenv"
)

// What a start has left for the next one is taken for what it is: when it is of no use,
// the start after that looks anew.
func TestAnInterpreterThatIsRememberedAndBroken(t *testing.T) {
	t.Parallel()
	rt, err := pyenv.Resolve(t.Context(), pyenv.Options{Python: python()})
	require.NoError(t, err)
	real, err := filepath.EvalSymlinks(rt.Path)
	require.NoError(t, err)
	venv := t.TempDir()
	for _, dir := range []string{"bin", "lib"} {
		require.NoError(t, os.Mkdir(filepath.Join(venv, dir), 0o700))
	}
	require.NoError(t, os.WriteFile(filepath.Join(venv, "pyvenv.cfg"), []byte("home = "+filepath.Dir(real)+"\n"), 0o600))
	o := runner.ServerOptions{Python: filepath.Join(venv, "bin", "python"), Home: t.TempDir()}
	require.NoError(t, os.Symlink(real, o.Python))

	f := startServer(o)
	isUp(t, f)
	require.NoError(t, f.stop())
	left, err := filepath.Glob(filepath.Join(o.Home, "agent", "starts", "*"))
	require.NoError(t, err)
	require.Len(t, left, 2, "what it says of itself, and compiled code: %s", left)

	packages := filepath.Join(venv, "lib", "python"+strings.TrimSuffix(rt.Version, filepath.Ext(rt.Version)), "site-packages")
	require.NoError(t, os.MkdirAll(packages, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(packages, "sitecustomize.py"), []byte("import os\nos.write(2, b'it is broken')\nos._exit(3)\n"), 0o600))

	s := runner.NewServer(o)
	require.ErrorContains(t, s.Run(t.Context(), func(int) {}), "it is broken")
	err = s.Run(t.Context(), func(int) {})
	require.ErrorAs(t, err, new(*pyenv.NoPythonError))
	require.ErrorContains(t, err, "it is broken")

	require.NoError(t, os.Remove(filepath.Join(packages, "sitecustomize.py")))
	f = startServer(o)
	isUp(t, f)
	require.NoError(t, f.stop())
}

func isUp(t *testing.T, f *forks) {
	t.Helper()
	select {
	case <-f.pids:
	case err := <-f.ended:
		f.ended <- nil // for who stops it
		require.NoError(t, err)
	}
}
