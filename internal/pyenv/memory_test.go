package pyenv_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/pyenv"
)

// An interpreter that has answered is not run again, until something is another that its
// answer depends on. That it was run shows: it is of another version then.
func TestMemory(t *testing.T) {
	t.Parallel()
	const before, after = "3.11.7", "3.12.1"
	for name, tc := range map[string]struct {
		change func(t *testing.T, python, memory string, o *pyenv.Options)
		want   string
	}{
		"nothing changes": {func(*testing.T, string, string, *pyenv.Options) {}, before},
		"a variable that Python does not read": {func(_ *testing.T, _, _ string, o *pyenv.Options) {
			o.Env = append(o.Env, "LANG=C")
		}, before},
		"no memory": {func(_ *testing.T, _, _ string, o *pyenv.Options) { o.Memory = "" }, after},
		"fresh":     {func(_ *testing.T, _, _ string, o *pyenv.Options) { o.Fresh = true }, after},
		"the link is another": {func(t *testing.T, python, _ string, _ *pyenv.Options) {
			exe, err := os.Readlink(python)
			require.NoError(t, err)
			require.NoError(t, os.Remove(python))
			require.NoError(t, os.Symlink(exe, python)) // its time is another
		}, after},
		"a virtual environment": {func(t *testing.T, python, _ string, _ *pyenv.Options) {
			require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(python), "pyvenv.cfg"), []byte("home = /usr\n"), 0o600))
		}, after},
		"a variable that Python reads": {func(_ *testing.T, _, _ string, o *pyenv.Options) {
			o.Env = append(o.Env, "PYTHONPATH=/usr")
		}, after},
		"a variable that the loader reads": {func(_ *testing.T, _, _ string, o *pyenv.Options) {
			o.Env = append(o.Env, "LD_LIBRARY_PATH=/usr/lib")
		}, after},
		"what is kept is damaged": {func(t *testing.T, _, memory string, _ *pyenv.Options) {
			for _, f := range kept(t, memory) {
				require.NoError(t, os.WriteFile(f, []byte(`{"python`), 0o600))
			}
		}, after},
		"what is kept is of another": {func(t *testing.T, _, memory string, _ *pyenv.Options) {
			for _, f := range kept(t, memory) {
				require.NoError(t, os.WriteFile(f, []byte(`{"python":"/other","version":[3,11,7],"executable":"/other"}`), 0o600))
			}
		}, after},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			python := fake{Version: before}.install(t, filepath.Join(w.bin, "python"))
			o := w.options()
			o.Memory = filepath.Join(w.home, "agent", "starts")
			rt, err := pyenv.Resolve(t.Context(), o)
			require.NoError(t, err)
			require.Equal(t, before, rt.Version)
			require.False(t, rt.Recalled)
			then := time.Now().Add(-time.Hour) // what is made later has another time, however soon that is
			require.NoError(t, os.Chtimes(filepath.Dir(python), then, then))

			fresh := fake{Version: after}
			behaves(t, python, fresh)
			tc.change(t, python, o.Memory, &o)
			again, err := pyenv.Resolve(t.Context(), o)
			require.NoError(t, err)
			require.Equal(t, tc.want, again.Version)
			require.Equal(t, tc.want == before, again.Recalled)
			require.Equal(t, rt.Path, again.Path)
			if o.Memory == "" || tc.want == before {
				return
			}
			o.Fresh = false
			third, err := pyenv.Resolve(t.Context(), o)
			require.NoError(t, err)
			require.True(t, third.Recalled, "the new answer is kept")
			require.Equal(t, after, third.Version)
		})
	}
}

// Whoever puts an interpreter in the place of another may give it the other's times.
func TestAnotherFileIsAnotherInterpreter(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" { // its files are told by size and time
		return
	}
	w := newWorld(t)
	python := fake{Version: "3.11.7"}.install(t, filepath.Join(w.bin, "python"))
	exe, err := filepath.EvalSymlinks(python)
	require.NoError(t, err)
	data, err := os.ReadFile(exe)
	require.NoError(t, err)
	at := time.Now().Add(-time.Hour)
	place := func() {
		next := python + ".new"
		require.NoError(t, os.WriteFile(next, data, 0o600))
		require.NoError(t, os.Chmod(next, 0o700)) //nolint:gosec // it is to be run
		require.NoError(t, os.Chtimes(next, at, at))
		require.NoError(t, os.Rename(next, python))
	}
	place()
	o := w.options()
	o.Memory = filepath.Join(w.home, "agent", "starts")
	for _, recalled := range []bool{false, true} {
		rt, err := pyenv.Resolve(t.Context(), o)
		require.NoError(t, err)
		require.Equal(t, "3.11.7", rt.Version)
		require.Equal(t, recalled, rt.Recalled)
	}
	behaves(t, python, fake{Version: "3.12.1"})
	place()
	rt, err := pyenv.Resolve(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, "3.12.1", rt.Version)
}

// behaves changes an interpreter whose file stays the same.
func behaves(t *testing.T, python string, f fake) {
	t.Helper()
	other := f.install(t, filepath.Join(t.TempDir(), "python"))
	require.NoError(t, os.Rename(other+".fake", python+".fake"))
}

func kept(t *testing.T, memory string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(memory, "python-*"))
	require.NoError(t, err)
	require.NotEmpty(t, all)
	return all
}

// What does not run is asked each time: it may run the next time.
func TestFailuresAreNotRemembered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	python := fake{Exit: 1}.install(t, filepath.Join(w.bin, "python"))
	o := w.options()
	o.Python, o.Memory = python, filepath.Join(w.home, "memory")
	_, err := pyenv.Resolve(t.Context(), o)
	require.Error(t, err)
	behaves(t, python, fake{Version: "3.11.7"})
	rt, err := pyenv.Resolve(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, "3.11.7", rt.Version)
}

// A script may choose another interpreter each time.
func TestScriptsAreNotRemembered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	python := fake{Version: "3.11.7"}.install(t, filepath.Join(w.bin, "python3"))
	shim := filepath.Join(w.bin, "shim")
	require.NoError(t, os.WriteFile(shim, []byte("#!/bin/sh\nexec "+python+" \"$@\"\n"), 0o600))
	require.NoError(t, os.Chmod(shim, 0o700)) //nolint:gosec // it is to be run
	o := w.options()
	o.Python, o.Memory = shim, filepath.Join(w.home, "memory")
	for range 2 {
		rt, err := pyenv.Resolve(t.Context(), o)
		require.NoError(t, err)
		require.False(t, rt.Recalled)
	}
	require.NoDirExists(t, o.Memory)
}
