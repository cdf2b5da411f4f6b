package kernelserver_test

import (
	"context"
	"fmt"
	"net/http"
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

// packages returns the folder that a Python has ipykernel from.
func packages(t *testing.T, python string) string {
	out, err := exec.CommandContext(t.Context(), python, "-c", "import ipykernel, os; print(os.path.dirname(os.path.dirname(ipykernel.__file__)))").Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}

// TestBehindWalls: both servers listen and make kernels where they can open no port.
func TestBehindWalls(t *testing.T) {
	t.Parallel()
	if err := sandbox.Available(sandbox.Seccomp); err != nil {
		t.Log(err)
		return
	}
	all := testpython.Path(t)
	only := testpython.JupyterServerOnly(t) // which has its packages from there
	folders := append(sandbox.InterpreterPaths(all), packages(t, all), filepath.Dir(filepath.Dir(filepath.Dir(only))))
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

// TestInAKernelOfItsOwn: both servers are reached in a sandbox that has a network of its own, and
// make kernels there, forked and spawned.
func TestInAKernelOfItsOwn(t *testing.T) {
	t.Parallel()
	if err := sandbox.Available(sandbox.GVisor); err != nil {
		t.Log(err)
		return
	}
	all, only := testpython.Path(t), testpython.JupyterServerOnly(t)
	folders := append(sandbox.InterpreterPaths(all), packages(t, all), filepath.Dir(filepath.Dir(filepath.Dir(only))))
	for name, python := range map[string]string{"kernel gateway": all, "jupyter server": only} {
		for _, fork := range []bool{true, false} {
			t.Run(fmt.Sprint(name, " fork=", fork), func(t *testing.T) {
				t.Parallel()
				rt, err := pyenv.Resolve(t.Context(), pyenv.Options{Python: python, Home: t.TempDir()})
				require.NoError(t, err)
				s, err := kernelserver.Launch(t.Context(), kernelserver.Options{
					Runtime: rt, JupyterServer: name == "jupyter server", Fork: fork,
					Rules: sandbox.Rules{Level: sandbox.GVisor, Scratch: t.TempDir(), Write: []string{t.TempDir()}, Read: append(sandbox.InterpreterPaths(rt.Path), folders...)},
				})
				require.NoError(t, err)
				require.Equal(t, "h", filepath.Base(s.Calls()))
				transport := &http.Transport{DisableKeepAlives: true, DialContext: s.Dialer()}
				client := &http.Client{Transport: transport}
				post := func(token string) int {
					body := strings.NewReader(`{"env": {}}`)
					req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/api/kernels", body)
					require.NoError(t, err)
					req.Header.Set("Authorization", "token "+token)
					resp, err := client.Do(req)
					require.NoError(t, err)
					require.NoError(t, resp.Body.Close())
					return resp.StatusCode
				}
				require.Contains(t, []int{http.StatusUnauthorized, http.StatusForbidden}, post("not it"))
				require.Equal(t, http.StatusCreated, post(s.Token()))
				for _, l := range s.Tail(100) {
					require.NotContains(t, l, "Kernels are spawned", "they are forked")
				}
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				require.NoError(t, s.Stop(ctx))
				_, err = client.Get(s.URL()) // nobody is there
				require.Error(t, err)
			})
		}
	}
}
