package kernelserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/coppice-run/coppice/internal/kernelserver"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/internal/pyenv"
	"github.com/coppice-run/coppice/test/testpython"
)

// ask sends one request with the token and returns status and body.
func ask(t *testing.T, method, url, token string, body any) (int, string) {
	t.Helper()
	data, err := json.Marshal(body)
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(data))
	require.NoError(t, err)
	if token != "" {
		req.Header.Set("Authorization", "token "+token)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	answer, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(answer)
}

// kernel makes a kernel and returns its process, once ipykernel has bound its
// sockets. It is a child of the gateway that was not there before.
func kernel(t *testing.T, url, token string, gateway process.Identity, body map[string]any) process.Identity {
	t.Helper()
	before, err := process.Descendants(gateway)
	require.NoError(t, err)
	status, answer := ask(t, http.MethodPost, url+"/api/kernels", token, body)
	require.Equal(t, http.StatusCreated, status, answer)
	var model struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(answer), &model))
	sockets := filepath.Join(procEnv(t, gateway.PID)["JUPYTER_RUNTIME_DIR"], "kernel-"+model.ID+"-ipc-*")
	var found process.Identity
	require.Eventually(t, func() bool {
		if bound, err := filepath.Glob(sockets); err != nil || len(bound) < 5 {
			return false
		}
		now, err := process.Descendants(gateway)
		i := slices.IndexFunc(now, func(id process.Identity) bool {
			args, err := process.Arguments(id.PID)
			return err == nil && !slices.Contains(before, id) && !strings.Contains(strings.Join(args, " "), "kernel-zygote")
		})
		if err != nil || i < 0 {
			return false
		}
		found = now[i]
		return true
	}, patience, 20*time.Millisecond, "no kernel")
	return found
}

func procEnv(t *testing.T, pid int) map[string]string {
	t.Helper()
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	require.NoError(t, err)
	env := make(map[string]string)
	for entry := range strings.SplitSeq(string(data), "\x00") {
		if name, value, ok := strings.Cut(entry, "="); ok {
			env[name] = value
		}
	}
	return env
}

func cmdline(t *testing.T, pid int) string {
	t.Helper()
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	require.NoError(t, err)
	return strings.ReplaceAll(string(data), "\x00", " ")
}

func cwd(t *testing.T, id process.Identity) string {
	t.Helper()
	dir, err := os.Readlink("/proc/" + strconv.Itoa(id.PID) + "/cwd")
	require.NoError(t, err)
	return dir
}

func TestRealGateway(t *testing.T) {
	t.Parallel()
	testRealGateway(t, kernelserver.Options{Runtime: realPython(t)}, map[string]int{"/api": http.StatusUnauthorized})
}

// Jupyter Server in its place does the same, and has fewer services than it has by
// default.
func TestRealJupyterServer(t *testing.T) {
	t.Parallel()
	rt, err := pyenv.Resolve(t.Context(), pyenv.Options{Python: testpython.JupyterServerOnly(t)})
	require.NoError(t, err)
	packages, err := pyenv.Preflight(t.Context(), rt)
	require.NoError(t, err)
	require.True(t, pyenv.JupyterServerOnly(packages))
	testRealGateway(t, kernelserver.Options{Runtime: rt, JupyterServer: true}, map[string]int{
		"/api/contents": http.StatusNotFound, "/api/sessions": http.StatusNotFound, "/api/terminals": http.StatusNotFound,
	})
}

// testRealGateway checks what a gateway promises. refused are requests without the
// token and their answers.
func testRealGateway(t *testing.T, o kernelserver.Options, refused map[string]int) {
	t.Helper()
	rt := o.Runtime
	base, dir := shortDir(t), t.TempDir()
	// A file of the project must not pass for a module, in gateway and kernel.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "random.py"), []byte("raise SystemExit('shadowed')"), 0o600))
	rt.Env = append(rt.Env, "PI_COLOUR=green", "LANG=C.UTF-8", "TMPDIR=/tmp/$HOME")
	begin := time.Now()
	o.Runtime, o.TempDir, o.MaxKernels = rt, base, 2
	s := launch(t, o)
	t.Logf("started in %v", time.Since(begin))

	for path, token := range map[string]string{"/api/kernels": "", "/api/kernelspecs": "wrong"} {
		status, _ := ask(t, http.MethodGet, s.URL()+path, token, nil)
		require.Contains(t, []int{http.StatusUnauthorized, http.StatusForbidden}, status, path)
	}
	for path, want := range refused {
		status, _ := ask(t, http.MethodGet, s.URL()+path, "", nil)
		require.Equal(t, want, status, path)
	}
	require.NoError(t, filepath.WalkDir(base, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		if d.Type().IsRegular() {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NotContains(t, string(data), s.Token(), path)
		}
		return nil
	}))
	status, answer := ask(t, http.MethodGet, s.URL()+"/api/kernels", s.Token(), nil)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "[]", answer, "kernels are listed")

	k := kernel(t, s.URL(), s.Token(), s.Identity(), map[string]any{
		"name": "python3", "path": dir, "env": s.KernelEnv(map[string]string{"PI_SESSION_FILE": "/s.json", "KERNEL_TAG": "a"}),
	})
	env := procEnv(t, k.PID)
	for _, entry := range rt.Env {
		name, value, _ := strings.Cut(entry, "=")
		require.Equal(t, value, env[name], name)
	}
	require.Equal(t, "/s.json", env["PI_SESSION_FILE"])
	require.Equal(t, "a", env["KERNEL_TAG"])
	require.Contains(t, env["IPYTHONDIR"], base)
	for name := range env {
		require.False(t, strings.HasPrefix(name, "KG_") || strings.HasPrefix(name, "JUPYTER_") || name == "PYTHONUNBUFFERED", name)
	}
	require.Equal(t, dir, cwd(t, k))
	require.Contains(t, cmdline(t, k.PID), "--HistoryManager.enabled=False")
	for _, pid := range []int{s.Identity().PID, k.PID} {
		require.NotContains(t, cmdline(t, pid), s.Token())
	}
	var limit unix.Rlimit
	require.NoError(t, unix.Prlimit(s.Identity().PID, unix.RLIMIT_NOFILE, nil, &limit))
	require.Equal(t, min(65536, limit.Max), limit.Cur)
	require.NoFileExists(t, filepath.Join(env["IPYTHONDIR"], "profile_default", "history.sqlite"))

	// The second kernel gets nothing of the first; a third is refused.
	k2 := kernel(t, s.URL(), s.Token(), s.Identity(), map[string]any{"name": "python3", "env": s.KernelEnv(nil)})
	require.NotContains(t, procEnv(t, k2.PID), "PI_SESSION_FILE")
	require.Equal(t, cwd(t, s.Identity()), cwd(t, k2))
	emptyDir(t, cwd(t, k2))
	status, _ = ask(t, http.MethodPost, s.URL()+"/api/kernels", s.Token(), map[string]any{"env": s.KernelEnv(nil)})
	require.Equal(t, http.StatusForbidden, status)

	begin = time.Now()
	require.NoError(t, s.Stop(t.Context()))
	t.Logf("stopped two kernels in %v", time.Since(begin))
	for _, id := range []process.Identity{s.Identity(), k, k2} {
		require.False(t, process.Alive(id))
	}
	require.NoError(t, s.Err())
	emptyDir(t, base)
}

// A stopped process can do nothing for its own end, like one that is stuck in
// native code.
func TestRealNothingOutlivesAKilledHost(t *testing.T) {
	t.Parallel()
	base := shortDir(t)
	rt := realPython(t)
	exe, err := os.Executable()
	require.NoError(t, err)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	host, err := process.Start(process.Options{Path: exe, Env: append(rt.Env, hostRole+"="+rt.Path, "TMPDIR="+base), Log: w})
	require.NoError(t, err)
	require.NoError(t, w.Close())
	t.Cleanup(func() {
		require.NoError(t, host.Stop(context.Background(), process.StopOptions{Grace: -1}))
		require.NoError(t, r.Close())
	})
	var s told
	require.NoError(t, json.Unmarshal([]byte(firstLine(t, r)), &s))
	gateway, err := process.Identify(s.PID)
	require.NoError(t, err)
	k := kernel(t, s.URL, s.Token, gateway, map[string]any{"env": map[string]string{}})
	stuck := kernel(t, s.URL, s.Token, gateway, map[string]any{"env": map[string]string{}})
	require.NoError(t, unix.Kill(stuck.PID, unix.SIGSTOP))

	begin := time.Now()
	require.NoError(t, host.Signal(os.Kill))
	<-host.Done()
	require.Eventually(t, func() bool {
		return !process.Alive(gateway) && !process.Alive(k) && !process.Alive(stuck)
	}, patience, 5*time.Millisecond, "processes outlive their host")
	t.Logf("all gone after %v", time.Since(begin))

	// The next host removes what this one could not.
	entries, err := os.ReadDir(base)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	next := launch(t, kernelserver.Options{Runtime: fake{}.install(t), TempDir: base})
	require.NoError(t, next.Stop(t.Context()))
	emptyDir(t, base)
}

func TestRealKernelsEndWithTheirGateway(t *testing.T) {
	t.Parallel()
	base := shortDir(t)
	s := launch(t, kernelserver.Options{Runtime: realPython(t), TempDir: base})
	k := kernel(t, s.URL(), s.Token(), s.Identity(), map[string]any{"env": s.KernelEnv(nil)})
	require.NoError(t, unix.Kill(k.PID, unix.SIGSTOP))
	require.NoError(t, unix.Kill(s.Identity().PID, unix.SIGKILL))
	<-s.Done()
	require.ErrorContains(t, s.Err(), "was ended by signal 9")
	require.Eventually(t, func() bool { return !process.Alive(k) }, patience, 5*time.Millisecond)
	require.NoError(t, s.Stop(t.Context()))
	emptyDir(t, base)
}

// What a kernel has started may lead a session of its own too: it is found
// through its parents.
func TestRealStopReachesWhatKernelsStarted(t *testing.T) {
	t.Parallel()
	s := launch(t, kernelserver.Options{Runtime: realPython(t)})
	startup := filepath.Join(procEnv(t, s.Identity().PID)["IPYTHONDIR"], "profile_default", "startup")
	require.NoError(t, os.MkdirAll(startup, 0o700))
	script := "import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE, start_new_session=True)\n"
	require.NoError(t, os.WriteFile(filepath.Join(startup, "start.py"), []byte(script), 0o600))

	k := kernel(t, s.URL(), s.Token(), s.Identity(), map[string]any{"env": s.KernelEnv(nil)})
	var started []process.Identity
	require.Eventually(t, func() bool {
		var err error
		started, err = process.Descendants(k)
		return err == nil && len(started) == 1
	}, patience, 20*time.Millisecond)
	// The kernel cannot end itself, nor does the caller wait until it might.
	require.NoError(t, unix.Kill(k.PID, unix.SIGSTOP))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, s.Stop(ctx))
	require.False(t, process.Alive(k))
	require.False(t, process.Alive(started[0]))
}
