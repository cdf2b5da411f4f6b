package kernelserver_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/kernelserver"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/internal/pyenv"
	"github.com/coppice-run/coppice/internal/sandbox"
	"github.com/coppice-run/coppice/test/testpython"
)

// TestBehindWalls: both servers listen and make kernels where they can open no port.
func TestBehindWalls(t *testing.T) {
	t.Parallel()
	if err := sandbox.Available(sandbox.Seccomp); err != nil {
		t.Log(err)
		return
	}
	all := testpython.Path(t)
	out, err := exec.CommandContext(t.Context(), all, "-c", "import ipykernel, os; print(os.path.dirname(os.path.dirname(ipykernel.__file__)))").Output()
	require.NoError(t, err)
	only := testpython.JupyterServerOnly(t) // which has its packages from there
	folders := append(sandbox.InterpreterPaths(all), strings.TrimSpace(string(out)), filepath.Dir(filepath.Dir(filepath.Dir(only))))
	for name, python := range map[string]string{"kernel gateway": all, "jupyter server": only} {
		for _, owner := range []*process.Owner{nil, {}} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				rt, err := pyenv.Resolve(t.Context(), pyenv.Options{Python: python, Home: t.TempDir()})
				require.NoError(t, err)
				owner.Use(rt.Path)
				s, err := kernelserver.Launch(t.Context(), kernelserver.Options{
					Runtime: rt, JupyterServer: name == "jupyter server", Fork: true, Owner: owner,
					Rules: sandbox.Rules{Level: sandbox.Seccomp, Write: []string{t.TempDir()}, Read: append(sandbox.InterpreterPaths(rt.Path), folders...)},
				})
				require.NoError(t, err)
				require.Equal(t, "h", filepath.Base(s.Calls()))
				require.NotZero(t, kernel(t, s.URL(), s.Token(), s.Identity(), map[string]any{"env": s.KernelEnv(nil)}).PID)
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				require.NoError(t, s.Stop(ctx))
			})
		}
	}
}
