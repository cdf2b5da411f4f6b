package kernelserver_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/coppice-run/coppice/internal/kernelserver"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/internal/pyenv"
	"github.com/coppice-run/coppice/test/testpython"
)

// zygote is the process that the kernels of a gateway are forked from; false: there is
// none.
func zygote(t *testing.T, gateway process.Identity) (process.Identity, bool) {
	t.Helper()
	all, err := process.Descendants(gateway)
	require.NoError(t, err)
	for _, id := range all {
		args, err := process.Arguments(id.PID)
		if err == nil && len(args) > 3 && strings.Contains(args[3], "kernel-zygote") && process.Alive(id) {
			return id, true
		}
	}
	return process.Identity{}, false
}

// forked says whether a kernel was forked: its memory says so, of which it shares much.
func forked(t *testing.T, k process.Identity) bool {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(k.PID), "auxv"))
	require.NoError(t, err)
	z, ok := zygote(t, parent(t, k))
	if !ok {
		return false
	}
	other, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(z.PID), "auxv"))
	require.NoError(t, err)
	return string(data) == string(other) // with the random addresses of one start of a program
}

func parent(t *testing.T, k process.Identity) process.Identity {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(k.PID), "status"))
	require.NoError(t, err)
	var pid int
	for line := range strings.SplitSeq(string(data), "\n") {
		if name, value, _ := strings.Cut(line, ":"); name == "PPid" {
			pid, err = strconv.Atoi(strings.TrimSpace(value))
			require.NoError(t, err)
		}
	}
	id, err := process.Identify(pid)
	require.NoError(t, err)
	return id
}

// A kernel that was forked is found, owned and ended as one that was spawned.
func TestKernelsAreForked(t *testing.T) {
	t.Parallel()
	testForks(t, kernelserver.Options{Runtime: realPython(t), Fork: true})
}

func TestKernelsOfJupyterServerAreForked(t *testing.T) {
	t.Parallel()
	rt, err := pyenv.Resolve(t.Context(), pyenv.Options{Python: testpython.JupyterServerOnly(t)})
	require.NoError(t, err)
	testForks(t, kernelserver.Options{Runtime: rt, JupyterServer: true, Fork: true})
}

func testForks(t *testing.T, o kernelserver.Options) {
	t.Helper()
	o.Runtime.Env = append(o.Runtime.Env, "PI_COLOUR=green")
	s := launch(t, o)
	first := kernel(t, s.URL(), s.Token(), s.Identity(), map[string]any{"env": s.KernelEnv(map[string]string{"KERNEL_OWN": "one"})})
	second := kernel(t, s.URL(), s.Token(), s.Identity(), map[string]any{"env": s.KernelEnv(nil)})
	require.True(t, forked(t, first), s.Tail(20))
	require.True(t, forked(t, second))
	for _, k := range []process.Identity{first, second} {
		require.Equal(t, s.Identity(), parent(t, k), "the gateway waits for it")
		session, err := unix.Getsid(k.PID)
		require.NoError(t, err)
		require.Equal(t, k.PID, session)
		env := procEnv(t, k.PID)
		require.Equal(t, "green", env["PI_COLOUR"])
		require.Equal(t, strconv.Itoa(s.Identity().PID), env["JPY_PARENT_PID"])
		for name, value := range env {
			require.NotContains(t, value, s.Token(), name)
			require.NotContains(t, name, "COPPICE_ZYGOTE")
		}
		args, err := process.Arguments(k.PID)
		require.NoError(t, err)
		require.FileExists(t, args[slices.Index(args, "-f")+1])
	}
	require.Equal(t, "one", procEnv(t, first.PID)["KERNEL_OWN"])
	require.NotContains(t, procEnv(t, second.PID), "KERNEL_OWN")

	// The gateway hears of the end of one, and there is no zombie.
	require.NoError(t, syscall.Kill(first.PID, syscall.SIGKILL))
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join("/proc", strconv.Itoa(first.PID)))
		return os.IsNotExist(err) && len(listed(t, s)) == 1
	}, patience, 20*time.Millisecond, "the end of a kernel")

	// The others do not notice the end of the zygote, and there is another.
	z, ok := zygote(t, s.Identity())
	require.True(t, ok)
	require.NoError(t, syscall.Kill(z.PID, syscall.SIGKILL))
	third := kernel(t, s.URL(), s.Token(), s.Identity(), map[string]any{"env": s.KernelEnv(nil)})
	require.True(t, process.Alive(second))
	require.True(t, forked(t, third), s.Tail(20))

	// A restart gives another process the same arguments.
	args, err := process.Arguments(third.PID)
	require.NoError(t, err)
	id := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(args[3]), "kernel-"), ".json")
	status, answer := ask(t, http.MethodPost, s.URL()+"/api/kernels/"+id+"/restart", s.Token(), map[string]any{})
	require.Equal(t, http.StatusOK, status, answer)
	require.False(t, process.Alive(third))
	again, err := process.Holding(args[3])
	require.NoError(t, err)
	require.Len(t, again, 1)
	third = again[0]
	require.True(t, forked(t, third), s.Tail(20))

	// With the gateway, all end.
	z, _ = zygote(t, s.Identity())
	require.NoError(t, syscall.Kill(s.Identity().PID, syscall.SIGKILL))
	require.Eventually(t, func() bool {
		return !slices.ContainsFunc([]process.Identity{second, third, z}, process.Alive)
	}, patience, 20*time.Millisecond, "they end with the gateway")
}

func listed(t *testing.T, s *kernelserver.Server) []any {
	t.Helper()
	status, answer := ask(t, http.MethodGet, s.URL()+"/api/kernels", s.Token(), nil)
	require.Equal(t, http.StatusOK, status, answer)
	var all []any
	require.NoError(t, json.Unmarshal([]byte(answer), &all))
	return all
}

// What cannot be forked is spawned, and the gateway says why, once.
func TestKernelsThatCannotBeForked(t *testing.T) {
	t.Parallel()
	threads := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(threads, "sitecustomize.py"),
		[]byte("import sys, threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"), 0o600))
	for name, tc := range map[string]struct {
		env  []string
		vars []string
		set  map[string]string
		want string
	}{
		"a variable that Python reads at its start": {
			vars: []string{"PYTHONHASHSEED"}, set: map[string]string{"PYTHONHASHSEED": "7"}, want: "their environment differs in PYTHONHASHSEED",
		},
		"a thread": {env: []string{"PYTHONPATH=" + threads}, want: "has begun a thread"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rt := realPython(t)
			rt.Env = append(rt.Env, tc.env...)
			s := launch(t, kernelserver.Options{Runtime: rt, Fork: true, KernelVars: tc.vars})
			for range 2 {
				k := kernel(t, s.URL(), s.Token(), s.Identity(), map[string]any{"env": s.KernelEnv(tc.set)})
				require.False(t, forked(t, k))
				for name, value := range tc.set {
					require.Equal(t, value, procEnv(t, k.PID)[name])
				}
			}
			said := slices.DeleteFunc(s.Tail(1000), func(l string) bool { return !strings.Contains(l, "spawned, not forked") })
			require.Len(t, said, 1)
			require.Contains(t, said[0], tc.want)
		})
	}
}

// A kernel has the packages that are there when it starts.
func TestPackagesThatChange(t *testing.T) {
	t.Parallel()
	rt, packages := realPython(t), t.TempDir()
	rt.Env = append(rt.Env, "PYTHONPATH="+packages)
	s := launch(t, kernelserver.Options{Runtime: rt, Fork: true})
	first := kernel(t, s.URL(), s.Token(), s.Identity(), map[string]any{"env": s.KernelEnv(nil)})
	require.True(t, forked(t, first), s.Tail(20))
	before, _ := zygote(t, s.Identity())
	require.NoError(t, os.WriteFile(filepath.Join(packages, "sitecustomize.py"), []byte("import colorsys\n"), 0o600))
	second := kernel(t, s.URL(), s.Token(), s.Identity(), map[string]any{"env": s.KernelEnv(nil)})
	require.True(t, forked(t, second), s.Tail(20))
	after, _ := zygote(t, s.Identity())
	require.NotEqual(t, before, after, "another zygote has loaded what is there now")
	require.True(t, process.Alive(first))
}

// How long a zygote is waited for, and when another is tried.
func TestTheProvisioner(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), realPython(t).Path, "testdata/test_forks.py", "forks.py").CombinedOutput()
	require.NoError(t, err, "%s", out)
}
