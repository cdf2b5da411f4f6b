//go:build linux

package toolenv_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/internal/toolenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
}

// TestAnEnvironmentWithoutPackages is made once, by one of many, and made again
// when what the tool needs has changed.
func TestAnEnvironmentWithoutPackages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "pyproject.toml", "[project]\nname = 'x'\ndependencies = []\n")
	ready, why := toolenv.Ready(t.Context(), dir)
	require.False(t, ready)
	require.Contains(t, why, "there is no interpreter")
	o := toolenv.Options{Dir: dir, Env: os.Environ()}
	var all sync.WaitGroup
	changed := make([]bool, 4)
	for i := range changed {
		all.Go(func() {
			r, err := toolenv.Setup(context.Background(), o)
			if err != nil {
				t.Error(err)
			}
			changed[i] = r.Changed
		})
	}
	all.Wait()
	made := 0
	for _, c := range changed {
		if c {
			made++
		}
	}
	require.Equal(t, 1, made)
	ready, why = toolenv.Ready(t.Context(), dir)
	require.True(t, ready, why)
	write(t, dir, "requirements.txt", "# nothing, but from a file\n")
	ready, why = toolenv.Ready(t.Context(), dir)
	require.False(t, ready)
	require.Contains(t, why, "has changed")
	r, err := toolenv.Setup(t.Context(), o)
	require.NoError(t, err)
	require.True(t, r.Changed)
	o.Force = true
	r, err = toolenv.Setup(t.Context(), o)
	require.NoError(t, err)
	require.True(t, r.Changed)
}

func TestWhatCannotBeMade(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		file, text, python, want string
		env                      []string
	}{
		"no Python":        {want: "no Python on PATH", env: []string{"PATH=/nowhere"}},
		"another Python":   {python: "/nowhere/python", want: "start /nowhere/python"},
		"a broken file":    {file: "pyproject.toml", text: "[project", want: "read pyproject.toml"},
		"an option for it": {file: "pyproject.toml", text: "[project]\ndependencies=['--index-url=http://x']", want: "is not a dependency"},
		"a wrong hash": {
			file: "requirements.txt", text: "./none.whl --hash=sha256:00\n", want: "install the packages of the tool: the command exited with code", env: os.Environ(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if tc.file != "" {
				write(t, dir, tc.file, tc.text)
			}
			_, err := toolenv.Setup(t.Context(), toolenv.Options{Dir: dir, Env: tc.env, Python: tc.python})
			require.ErrorContains(t, err, tc.want)
			ready, _ := toolenv.Ready(t.Context(), dir)
			require.False(t, ready)
		})
	}
}
