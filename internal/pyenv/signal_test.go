package pyenv_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/pyenv"
)

// TestASignalSaysNothingAboutPython ends interpreters while they are asked, as
// whoever cleans up processes does: they are asked again.
func TestASignalSaysNothingAboutPython(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fake fake
		why  string // "": it is found
	}{
		"by signal 15":            {fake{Version: "3.11.7", EndedBy: 15, EndedTimes: 5}, ""},
		"by signal 9":             {fake{Version: "3.11.7", EndedBy: 9, EndedTimes: 1}, ""},
		"by signal 2":             {fake{Version: "3.11.7", EndedBy: 2, EndedTimes: 2}, ""},
		"behind a shell's script": {fake{Version: "3.11.7", EndedBy: -143, EndedTimes: 3}, ""},
		"again and again":         {fake{Version: "3.11.7", EndedBy: 15, EndedTimes: 6}, "does not run: was ended by signal 15 (terminated), 6 times in a row"},
		"by its own fault":        {fake{Version: "3.11.7", EndedBy: -139, EndedTimes: 1}, "does not run: exited with code 139"},
		"by itself":               {fake{Version: "3.11.7", EndedBy: -7, EndedTimes: 1}, "does not run: exited with code 7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			python := tc.fake.install(t, filepath.Join(w.bin, "python"))
			rt, err := pyenv.Resolve(t.Context(), w.options())
			if tc.why != "" {
				var none *pyenv.NoPythonError
				require.ErrorAs(t, err, &none)
				require.Equal(t, tc.why, rt.Steps[4].Why)
				require.Equal(t, name != "again and again", none.Lasting())
				return
			}
			require.NoError(t, err)
			require.Equal(t, python, rt.Path)
		})
	}

	w := newWorld(t)
	python := fake{Version: "3.11.7", EndedBy: 15, EndedTimes: 2, Packages: []string{"kernel_gateway", "jupyter_server", "ipykernel"}}.install(t, filepath.Join(w.bin, "python"))
	_, err := pyenv.Preflight(t.Context(), pyenv.Runtime{Path: python})
	require.NoError(t, err, "its packages are asked for again, too")
}

// TestKnown recalls an interpreter until its file changes.
func TestKnown(t *testing.T) {
	t.Parallel()
	_, ok := pyenv.Known{}.Recall()
	require.False(t, ok)
	_, ok = pyenv.Know(pyenv.Runtime{Path: filepath.Join(t.TempDir(), "none")}).Recall()
	require.False(t, ok)

	for name, change := range map[string]func(path string) error{
		"nothing": func(string) error { return nil },
		"it was not called": func(path string) error { // only a change of the file counts
			return os.WriteFile(path+".fake", nil, 0o600)
		},
		"size": func(path string) error { return os.WriteFile(path, []byte("longer than it was"), 0o700) },
		"time": func(path string) error { return os.Chtimes(path, time.Now(), time.Now().Add(-time.Hour)) },
		"inode": func(path string) error {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			if err := os.WriteFile(path+".new", []byte("text"), 0o700); err != nil {
				return err
			}
			if err := os.Chtimes(path+".new", info.ModTime(), info.ModTime()); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		},
		"gone": os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file, link := filepath.Join(dir, "python3.11"), filepath.Join(dir, "python")
			require.NoError(t, os.WriteFile(file, []byte("text"), 0o700))
			require.NoError(t, os.Symlink(file, link))
			rt := pyenv.Runtime{Path: link, Version: "3.11.7", Env: []string{"PATH=/bin"}}
			k := pyenv.Know(rt)
			require.NoError(t, change(file))
			got, ok := k.Recall()
			require.Equal(t, name == "nothing" || name == "it was not called", ok)
			if ok {
				require.Equal(t, rt, got)
			}
		})
	}
}
