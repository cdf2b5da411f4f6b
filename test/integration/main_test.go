//go:build linux

// Package integration_test runs real Jupyter kernels through package coppice,
// as a host does, and looks at the machine afterwards.
package integration_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
	"github.com/coppice-run/coppice/test/proc"
	"github.com/coppice-run/coppice/test/starve"
	"github.com/coppice-run/coppice/test/testpython"
)

// withShared runs the tests and then ends the host that some of them share, so
// that nothing of it is left for the leak check.
type withShared struct{ m *testing.M }

func (w withShared) Run() int {
	code := w.m.Run()
	if err := common.end(); err != nil {
		fmt.Fprintln(os.Stderr, "the shared host:", err)
		code = max(code, 1)
	}
	starve.Note()
	return code
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(withShared{m}) }

// common is the host of tests that need nothing of their own but a session: a
// gateway costs seconds of processor time.
var common sharedHost

type sharedHost struct {
	once sync.Once
	host *coppice.Host
	home string
	mark string
	err  error
}

// backend is that of hosts whose tests name none: COPPICE_TEST_BACKEND, or the first
// that is available.
func backend() string { return cmp.Or(os.Getenv("COPPICE_TEST_BACKEND"), "auto") }

// quick is the backend of tests that are about the host, whatever its kernels are: the
// runner, whose sessions cost little. In the full run it is the gateway, too.
func quick() string {
	if full() {
		return backend()
	}
	return cmp.Or(os.Getenv("COPPICE_TEST_BACKEND"), backends.Runner)
}

// on returns a host with a backend and nothing else of its own: the shared one, if that
// has it. Whoever uses it names sessions after its test.
func on(t *testing.T, name string) *coppice.Host {
	t.Helper()
	if name == backends.Gateway && backend() != backends.Runner {
		return shared(t)
	}
	return start(t, coppice.Options{Backend: backends.Named(name)})
}

// shared returns that host. Whoever uses it names sessions after its test.
func shared(t *testing.T) *coppice.Host {
	t.Helper()
	python := testpython.Path(t)
	common.once.Do(func() {
		common.mark = messages.NewID()
		if common.home, common.err = os.MkdirTemp("", "coppice-integration-"); common.err != nil {
			return
		}
		common.host, common.err = coppice.Start(context.Background(), coppice.Options{
			Python: python, Home: common.home, Env: append(os.Environ(), marker+"="+common.mark),
			MaxSessions: 32, Backend: backends.Named(backend()), StartTimeout: 2 * time.Minute, InterruptGrace: 6 * time.Second,
		})
	})
	require.NoError(t, common.err)
	return common.host
}

// end shuts it down, and returns what is left of it.
func (c *sharedHost) end() error {
	if c.host == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	report := c.host.Shutdown(ctx)
	left := proc.WithEnv(marker, c.mark)
	switch err := os.RemoveAll(c.home); {
	case !report.Clean():
		return fmt.Errorf("leftovers: %+v", report.Leftovers)
	case len(left) > 0:
		return fmt.Errorf("processes were left behind: %v", left)
	default:
		return err
	}
}

// marker is the variable by which a test finds the processes of its host: the
// filter lets PI_ names through, so gateways and kernels inherit it.
const marker = "PI_COPPICE_TEST_MARK"

// start makes a host that is shut down at the end of the test, which then
// proves that no process of it is left. Starts that say nothing else are patient:
// many tests start gateways at the same time.
func start(t *testing.T, o coppice.Options) *coppice.Host {
	t.Helper()
	o.StartTimeout = cmp.Or(o.StartTimeout, 3*time.Minute)
	mark := messages.NewID()
	if o.Backend == nil {
		o.Backend = backends.Named(backend())
	}
	o.Python = testpython.Path(t)
	o.Home = t.TempDir()
	o.Env = append(append(os.Environ(), o.Env...), marker+"="+mark)
	host, err := coppice.Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
		defer cancel()
		report := host.Shutdown(ctx)
		require.True(t, report.Clean(), "leftovers: %+v", report.Leftovers)
		require.Empty(t, proc.WithEnv(marker, mark), "processes were left behind")
	})
	return host
}

// kernels returns the processes of a host's kernels, by session.
func kernels(t *testing.T, host *coppice.Host) map[string]int {
	t.Helper()
	tree, err := host.Snapshot(t.Context())
	require.NoError(t, err)
	pids := map[string]int{}
	var walk func(messages.Node)
	walk = func(n messages.Node) {
		if n.Kind == "kernel" && n.PID != 0 {
			pids[n.Name] = n.PID
		}
		for _, c := range n.Children {
			walk(c)
		}
	}
	walk(tree)
	return pids
}

func cells(code ...string) coppice.Request {
	var r coppice.Request
	for _, c := range code {
		r.Cells = append(r.Cells, messages.Cell{Code: c})
	}
	return r
}

// run makes a call that must be possible.
func run(t *testing.T, s *coppice.Session, r coppice.Request) messages.Result {
	t.Helper()
	result, err := s.Execute(t.Context(), r)
	if _, refused := errors.AsType[*messages.NotStartedError](err); !refused { // the result says so too
		require.NoError(t, err)
	}
	return result
}

func session(h *coppice.Host, name any) *coppice.Session {
	return h.Session(fmt.Sprint(name))
}
