package pyenv_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/pyenv"
)

// A real interpreter, first with an index that has nothing, then with the real
// pip's own progress.
func TestSetupRealWithoutIndex(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	empty := filepath.Join(root, "empty")
	require.NoError(t, os.Mkdir(empty, 0o700))
	var rec recorder
	o := pyenv.SetupOptions{
		Home: filepath.Join(root, "home"), Python: realPython(t), Progress: rec.tell,
		// PIP_USER and PYTHONPATH would lead pip elsewhere.
		Env: append(os.Environ(), "PIP_NO_INDEX=1", "PIP_FIND_LINKS="+empty, "PIP_USER=1", "PYTHONPATH="+filepath.Join(root, "lib")),
	}
	_, err := pyenv.Setup(t.Context(), o)
	var failed *pyenv.SetupError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, pyenv.StageInstalling, failed.Stage)
	require.Contains(t, failed.Problem, "no package index was reached")
	require.Contains(t, err.Error(), "its last word: ERROR: No matching distribution found for ")
	require.Equal(t, pyenv.StageCollecting, rec.stages[len(rec.stages)-1].Name)
	require.Greater(t, rec.stages[len(rec.stages)-1].Total, 50)
	got, err := pyenv.Check(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, pyenv.EnvIncomplete, got.State)
}

// The whole of it with the real venv and pip. COPPICE_TEST_FULL=1 installs what
// users get, from the index that pip is set up for; without it, packages of the
// same names that are made here.
func TestSetupReal(t *testing.T) {
	t.Parallel()
	var rec recorder
	root := t.TempDir()
	o := pyenv.SetupOptions{Home: filepath.Join(root, "home"), Python: realPython(t), Progress: rec.tell}
	packages := 0
	if os.Getenv("COPPICE_TEST_FULL") == "" {
		text := makeWheels(t, root, "jupyter_kernel_gateway:kernel_gateway", "jupyter_server:jupyter_server", "ipykernel:ipykernel")
		o = o.Installing(text)
		o.Env = append(os.Environ(), "PIP_NO_INDEX=1", "PIP_FIND_LINKS="+root)
		packages = 3
	}
	got, err := pyenv.Setup(t.Context(), o)
	require.NoError(t, err)
	t.Logf("set up in %v: Python %s, %v", got.Elapsed, got.Version, got.Packages)
	require.True(t, got.Changed)
	last := pyenv.Stage{}
	for _, s := range rec.stages {
		if s.Name == pyenv.StageCollecting {
			last = s
		}
	}
	require.Equal(t, last.Total, last.Done, "every package was counted once")
	require.GreaterOrEqual(t, last.Done, packages)

	out, err := exec.CommandContext(t.Context(), got.Python, "-m", "pip", "check").CombinedOutput()
	require.NoError(t, err, "%s", out)
	out, err = exec.CommandContext(t.Context(), filepath.Join(got.Dir, "bin", "pip"), "--version").CombinedOutput()
	require.NoError(t, err, "the environment's own scripts run: %s", out)

	again, err := pyenv.Setup(t.Context(), o)
	require.NoError(t, err)
	require.False(t, again.Changed)
	t.Logf("again in %v", again.Elapsed)
	require.Less(t, again.Elapsed, got.Elapsed/5)

	checked, err := pyenv.Check(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, pyenv.EnvReady, checked.State)
	require.Empty(t, cmp.Diff(got.Packages, checked.Packages))
}

// makeWheels writes one wheel for each "dist:module" and returns requirements
// that pin them.
func makeWheels(t *testing.T, dir string, wheels ...string) string {
	t.Helper()
	var text strings.Builder
	for _, w := range wheels {
		dist, module, _ := strings.Cut(w, ":")
		info := dist + "-1.2.dist-info/"
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for name, content := range map[string]string{
			module + "/__init__.py": "",
			info + "METADATA":       "Metadata-Version: 2.1\nName: " + dist + "\nVersion: 1.2\n",
			info + "WHEEL":          "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
			info + "RECORD":         module + "/__init__.py,,\n" + info + "METADATA,,\n" + info + "WHEEL,,\n" + info + "RECORD,,\n",
		} {
			f, err := z.Create(name)
			require.NoError(t, err)
			_, err = f.Write([]byte(content))
			require.NoError(t, err)
		}
		require.NoError(t, z.Close())
		require.NoError(t, os.WriteFile(filepath.Join(dir, dist+"-1.2-py3-none-any.whl"), b.Bytes(), 0o600))
		fmt.Fprintf(&text, "%s==1.2 \\\n    --hash=sha256:%x\n", dist, sha256.Sum256(b.Bytes()))
	}
	return text.String()
}
