//go:build linux

package sharedgateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/internal/pyenv"
	"github.com/coppice-run/coppice/internal/sharedgateway"
	"github.com/coppice-run/coppice/messages"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(crowdDir); dir != "" {
		playProgram(dir)
	}
	goleak.VerifyTestMain(m)
}

const token = "a-token-that-no-text-may-show"

// gateway is a server whose answers a test chooses, recorded under a process that
// does nothing.
type gateway struct {
	status atomic.Int64 // 0: silent
	proc   *exec.Cmd
	entry  sharedgateway.Gateway
}

func newGateway(t *testing.T, rt pyenv.Runtime) *gateway {
	t.Helper()
	g := &gateway{proc: exec.CommandContext(t.Context(), "sleep", "600")}
	g.status.Store(http.StatusOK)
	require.NoError(t, g.proc.Start())
	ended := make(chan struct{})
	go func() { _ = g.proc.Wait(); close(ended) }() // reaps it; it is killed below
	t.Cleanup(func() { _ = g.proc.Process.Kill(); <-ended })
	quiet := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.status.Load() == 0 {
			select {
			case <-quiet:
			case <-r.Context().Done():
			}
			return
		}
		if r.Header.Get("Authorization") != "token "+token {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.WriteHeader(int(g.status.Load()))
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(quiet) })
	id, err := process.Identify(g.proc.Process.Pid)
	require.NoError(t, err)
	g.entry = sharedgateway.Gateway{URL: server.URL, Token: token, Process: id, Fingerprint: sharedgateway.Fingerprint(rt), Dir: filepath.Join(t.TempDir(), "cpk-none")}
	return g
}

func record(t *testing.T, dir string, all ...sharedgateway.Gateway) {
	t.Helper()
	data, err := json.Marshal(map[string]any{"gateways": all})
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "gateway.json"), data, 0o600))
}

// none is an interpreter that cannot start anything: whoever tries fails.
var none = pyenv.Runtime{Path: "/nonexistent/python", Version: "3.12.0", Env: []string{"HOME=/h", "PI_A=1"}}

func TestReuse(t *testing.T) {
	t.Parallel()
	other := none
	other.Env = []string{"HOME=/other"}
	tests := []struct {
		name   string
		change func(*gateway)
		reused bool
	}{
		{"it answers", func(*gateway) {}, true},
		{"it fails, which is an answer", func(g *gateway) { g.status.Store(http.StatusInternalServerError) }, true},
		{"its process has ended", func(g *gateway) { g.entry.Process.Start = "1@before" }, false},
		{"it is of another environment", func(g *gateway) { g.entry.Fingerprint = sharedgateway.Fingerprint(other) }, false},
		{"its port is somebody else's", func(g *gateway) { g.entry.Token = "wrong" }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "python-gateway")
			g := newGateway(t, none)
			tt.change(g)
			record(t, dir, g.entry)
			lease, err := sharedgateway.Acquire(t.Context(), sharedgateway.Options{Dir: dir, Runtime: none, Suspicion: 100 * time.Millisecond})
			if !tt.reused {
				require.ErrorContains(t, err, "start a kernel gateway", "it is not reused: another is started")
				require.NotContains(t, err.Error(), token)
				return
			}
			require.NoError(t, err)
			require.Equal(t, g.entry.URL, lease.URL)
			require.NotContains(t, fmt.Sprintf("%v %+v %#v", lease.Gateway, lease.Gateway, lease.Gateway), token)
			found, err := sharedgateway.Look(t.Context(), dir)
			require.NoError(t, err)
			require.Equal(t, 1, found[0].Hosts)
			lease.Release()
			found, err = sharedgateway.Look(t.Context(), dir)
			require.NoError(t, err)
			require.Zero(t, found[0].Hosts)
			require.True(t, process.Alive(g.entry.Process), "a release ends nothing")
		})
	}
}

func TestSilenceIsSuspicionFirst(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "python-gateway")
	g := newGateway(t, none)
	record(t, dir, g.entry)
	lease, err := sharedgateway.Acquire(t.Context(), sharedgateway.Options{Dir: dir, Runtime: none})
	require.NoError(t, err)
	defer lease.Release()

	g.status.Store(0)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err = sharedgateway.Acquire(ctx, sharedgateway.Options{Dir: dir, Runtime: none})
	require.ErrorContains(t, err, "does not answer")
	require.True(t, process.Alive(g.entry.Process), "a slow answer is no reason to kill")

	watched := make(chan error, 1)
	go func() { watched <- lease.Watch(t.Context(), nil) }()
	_, err = sharedgateway.Acquire(t.Context(), sharedgateway.Options{Dir: dir, Runtime: none, Suspicion: 300 * time.Millisecond})
	require.ErrorContains(t, err, "start a kernel gateway", "it was replaced, as far as it could be")
	require.False(t, process.Alive(g.entry.Process))
	require.ErrorContains(t, <-watched, "ended", "its users hear of it")
}

func TestStopEndsAndForgets(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "python-gateway")
	stopped, err := sharedgateway.Stop(t.Context(), dir)
	require.NoError(t, err)
	require.Empty(t, stopped)
	require.NoDirExists(t, dir, "a stop makes nothing")

	g := newGateway(t, none)
	record(t, dir, g.entry)
	claim, err := sharedgateway.Take(t.Context(), dir, messages.SessionKey{Session: "a"})
	require.NoError(t, err)
	require.NoError(t, claim.Write(sharedgateway.Entry{Kernel: "k", Gateway: g.entry.Process}))
	claim.Release()
	stopped, err = sharedgateway.Stop(t.Context(), dir)
	require.NoError(t, err)
	require.Len(t, stopped, 1)
	require.False(t, process.Alive(g.entry.Process))
	require.NoFileExists(t, filepath.Join(dir, "gateway.json"))
	left, err := filepath.Glob(filepath.Join(dir, "sessions", "*.json"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestAFreshLockIsNotStolen(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "python-gateway")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	l := flock.New(filepath.Join(dir, "gateway.lock"))
	ok, err := l.TryLock()
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "gateway.lock"), []byte(`{"process":{"pid":77},"doing":"dreaming"}`), 0o600))
	ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, errors.New("enough"))
	defer cancel()
	_, err = sharedgateway.Stop(ctx, dir)
	var locked *sharedgateway.LockedError
	require.ErrorAs(t, err, &locked)
	require.ErrorContains(t, err, "process 77 holds it (dreaming")
	require.NoError(t, l.Close())
	_, err = sharedgateway.Stop(t.Context(), dir)
	require.NoError(t, err)
}

func TestJournal(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "python-gateway")
	key := messages.SessionKey{Session: "a/../b", Cwd: "/tmp"}
	claim, err := sharedgateway.Take(t.Context(), dir, key)
	require.NoError(t, err)
	_, ok := claim.Entry()
	require.False(t, ok)
	want := sharedgateway.Entry{Kernel: "k", Gateway: process.Identity{PID: 1, Start: "s"}}
	require.NoError(t, claim.Write(want))

	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = sharedgateway.Take(ctx, dir, key)
	require.ErrorContains(t, err, `another process uses the session "a/../b"`)

	claim.Release()
	claim, err = sharedgateway.Take(t.Context(), dir, key)
	require.NoError(t, err)
	defer claim.Release()
	got, ok := claim.Entry()
	require.True(t, ok)
	want.Key, want.Last = key, got.Last
	require.Empty(t, cmp.Diff(want, got))

	// A file about another session adopts no variables.
	other, err := sharedgateway.Take(t.Context(), dir, messages.SessionKey{Session: "b", Cwd: "/tmp"})
	require.NoError(t, err)
	defer other.Release()
	require.NoError(t, other.Write(want))
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.json"))
	require.NoError(t, err)
	require.Len(t, files, 2)
	for i, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		if strings.Contains(string(data), `"b"`) {
			mine, err := os.ReadFile(files[1-i])
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(file, mine, 0o600))
		}
	}
	_, ok = other.Entry()
	require.False(t, ok)

	require.NoError(t, claim.Forget())
	require.NoError(t, claim.Forget())
	_, ok = claim.Entry()
	require.False(t, ok)
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	base := sharedgateway.Fingerprint(none)
	require.Len(t, base, 16)
	for _, tt := range []struct {
		entry string
		same  bool
	}{{"PI_B=2", true}, {"TERM=dumb", true}, {"PYTHONPATH=/x", false}, {"LD_LIBRARY_PATH=/x", false}, {"LC_ALL=C", false}} {
		rt := none
		rt.Env = append([]string{tt.entry}, none.Env...)
		require.Equal(t, tt.same, base == sharedgateway.Fingerprint(rt), tt.entry)
	}
	rt := none
	rt.Version = "3.13.0"
	require.NotEqual(t, base, sharedgateway.Fingerprint(rt))
}
