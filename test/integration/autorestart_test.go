//go:build linux

package integration_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/external"
)

// A Jupyter Server with its own settings starts a kernel that died anew, under the
// same id, and takes up to 3 s to notice; what it is sent meanwhile runs in the new
// and empty process. Whoever asks then is told that the variables are gone: a kernel
// is killed at a random moment, while a cell runs and while it is idle.
func TestAServerThatRestartsKernels(t *testing.T) {
	t.Parallel()
	server := external.Start(t, external.JupyterServer, external.Options{})
	host := startExternal(t, server, server.URL, "", coppice.Options{MaxSessions: 8})
	lanes, rounds := 2, 1
	if full() {
		lanes, rounds = 4, 10
	}
	t.Run("kernels", func(t *testing.T) {
		for lane := range lanes {
			t.Run(strconv.Itoa(lane), func(t *testing.T) {
				t.Parallel()
				for round := range rounds {
					killed(t, session(host, fmt.Sprintf("restarted-%d-%d", lane, round)), lane%2 == 0)
				}
			})
		}
	})
}

// killed kills the kernel of a new session, and checks what the session says.
func killed(t *testing.T, s *coppice.Session, busy bool) {
	t.Helper()
	r := run(t, s, cells("import os, time; x = 1; print(os.getpid())"))
	require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)
	pid, err := strconv.Atoi(strings.TrimSpace(r.Text))
	require.NoError(t, err)
	kill := func() { require.NoError(t, syscall.Kill(pid, syscall.SIGKILL)) }
	var begin time.Time
	var after time.Duration
	if busy {
		after = rand.N(time.Second)
		for e, err := range s.Stream(t.Context(), cells("print('begun', flush=True); time.sleep(600)")) {
			require.NoError(t, err)
			switch e := e.(type) {
			case messages.Stream:
				<-time.After(after)
				kill()
				begin = time.Now()
			case messages.Final:
				r = e.Result
			}
		}
		require.Equal(t, messages.OutcomeLost, r.Outcome, r.Text)
	} else {
		after = rand.N(4 * time.Second)
		kill()
		begin = time.Now()
		<-time.After(after)
		r = run(t, s, cells("print('x' in globals())"))
	}
	t.Logf("busy=%v, %v: %s, %s, %v after the kill", busy, after.Round(time.Millisecond), r.Outcome, r.State, time.Since(begin).Round(time.Millisecond))
	require.NotEqual(t, messages.StateKept, r.State, r.Text)
	want := messages.StateKept // since the answer before came from the new kernel
	switch r.Outcome {
	case messages.OutcomeOK:
		require.Contains(t, r.Cells[0].Output, "False")
	case messages.OutcomeLost:
		want = messages.StateFresh
	default:
		require.Fail(t, "neither an answer nor a loss", "%+v", r)
	}
	r = run(t, s, cells("print('x' in globals())"))
	require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)
	require.Contains(t, r.Cells[0].Output, "False")
	require.Equal(t, want, r.State)
	require.NoError(t, s.Close(t.Context()))
}
