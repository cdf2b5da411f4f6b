//go:build linux

// Package integration_test runs real Jupyter kernels through package coppice,
// as a host does, and looks at the machine afterwards.
package integration_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/proc"
	"github.com/coppice-run/coppice/test/testpython"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// marker is the variable by which a test finds the processes of its host: the
// filter lets PI_ names through, so gateways and kernels inherit it.
const marker = "PI_COPPICE_TEST_MARK"

// start makes a host that is shut down at the end of the test, which then
// proves that no process of it is left.
func start(t *testing.T, o coppice.Options) *coppice.Host {
	t.Helper()
	mark := messages.NewID()
	o.Python = testpython.Path(t)
	o.Home = t.TempDir()
	o.Env = append(os.Environ(), marker+"="+mark)
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
	require.NoError(t, err)
	return result
}

func session(h *coppice.Host, name any) *coppice.Session {
	return h.Session(messages.SessionKey{Session: fmt.Sprint(name)})
}
