package escape_test

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/proc"
	"github.com/coppice-run/coppice/workspace"
)

// TestLimitsInSandboxes: what meets a limit of its session, or of its workspace, is told with
// the limit's name, and the next call goes on.
func TestLimitsInSandboxes(t *testing.T) {
	if lacksGVisor(t) {
		return
	}
	h := host(t, python(t), kernel.IsolationGVisor, shared(t), func(o *coppice.Options) { o.Home, o.MaxSessions = shared(t), 8 })
	_, err := h.Workspace(t.Context(), "many", workspace.Options{Total: workspace.Total{Processes: 10}})
	require.ErrorContains(t, err, "are not kept to where it has a kernel of its own")
	each, err := h.Workspace(t.Context(), "each", workspace.Options{Limits: coppice.Limits{Memory: 512 << 20, Processes: 20}})
	require.NoError(t, err)
	brief, err := h.Workspace(t.Context(), "brief", workspace.Options{Limits: coppice.Limits{CPU: time.Second}})
	require.NoError(t, err)
	all, err := h.Workspace(t.Context(), "all", workspace.Options{Total: workspace.Total{Memory: 300 << 20, Output: 1 << 20}, Quota: 8 << 20})
	require.NoError(t, err)
	for _, c := range []struct {
		in    *workspace.Workspace
		limit messages.Limit
		code  string
	}{
		{each, messages.LimitMemory, "b = bytearray(1 << 30)"},
		{each, messages.LimitProcesses, "import os, time\nfor _ in range(60):\n    if os.fork() == 0:\n        time.sleep(60); os._exit(0)\ntime.sleep(60)"},
		{brief, messages.LimitCPU, "while True: pass"},
		{all, messages.LimitMemory, "import time\nb = []\nwhile True: b.append(bytearray(b'x') * (8 << 20)); time.sleep(0.02)"},
		{all, messages.LimitOutput, "while True: print('x' * 1000)"},
		{all, messages.LimitDisk, "import time\nfor i in range(40): open(f'f{i}', 'wb').write(bytes(1 << 20))\ntime.sleep(60)"},
	} {
		s := h.Session("s", coppice.InWorkspace(c.in.Name()))
		r := try(t, s, c.code, false)
		require.NotNil(t, r.Exceeded, "%s of %s: %s %s", c.limit, c.in.Name(), r.Outcome, r.Text)
		require.Equal(t, c.limit, r.Exceeded.Limit, r.Text)
		require.Contains(t, r.Text, string(c.limit))
		recovers(t, c.in, s)
	}
}

// TestASandboxThatEnds: the sessions of a sandbox are lost with it, also when one of them ends
// it, and the next call has another; nothing of it is left.
func TestASandboxThatEnds(t *testing.T) {
	if lacksGVisor(t) {
		return
	}
	dir := shared(t)
	h := host(t, python(t), kernel.IsolationGVisor, dir)
	sandboxes := func() []proc.Process {
		return slices.DeleteFunc(proc.Below(os.Getpid()), func(p proc.Process) bool { return !strings.HasPrefix(p.Command, "runsc-") })
	}
	one, other := h.Session("one", coppice.In(dir)), h.Session("other", coppice.In(dir))
	for how, end := range map[string]func() messages.Result{
		"from outside": func() messages.Result {
			done := make(chan messages.Result, 1)
			go func() { done <- try(t, one, "import time; print('begun'); time.sleep(600)", false) }() // ends with the sandbox
			before := sandboxes()
			i := slices.IndexFunc(before, func(p proc.Process) bool { return strings.HasPrefix(p.Command, "runsc-sandbox") })
			require.GreaterOrEqual(t, i, 0, "a sandbox runs")
			require.NoError(t, syscall.Kill(before[i].PID, syscall.SIGKILL))
			return <-done
		},
		"from inside": func() messages.Result { return try(t, one, "import os; os.kill(1, 9); os.kill(1, 11)", false) },
	} {
		require.Equal(t, messages.OutcomeOK, call(t, one, "x = 1").Outcome)
		require.Equal(t, messages.OutcomeOK, call(t, other, "x = 1").Outcome)
		before := sandboxes()
		require.NotEmpty(t, before)
		r := end()
		t.Logf("%s: %s: %s", how, r.Outcome, r.Text)
		if r.Outcome == messages.OutcomeOK { // the kernel of the sandbox spares its first process
			continue
		}
		require.Contains(t, []messages.Outcome{messages.OutcomeLost, messages.OutcomeNotStarted}, r.Outcome, "%s: %s", how, r.Text)
		require.Eventually(t, func() bool {
			return !slices.ContainsFunc(before, func(p proc.Process) bool { return proc.Alive(p.PID) })
		}, 30*time.Second, 10*time.Millisecond, how)
		for _, s := range []*coppice.Session{one, other} {
			require.Equal(t, messages.OutcomeError, retried(t, s, "x").Outcome, "it is another session")
		}
	}
}

// retried makes a call, again when the session was about to be replaced.
func retried(t *testing.T, s *coppice.Session, code string) messages.Result {
	t.Helper()
	for {
		r, err := s.Execute(t.Context(), coppice.Request{Cells: []messages.Cell{{Code: code}}})
		if r.Outcome != messages.OutcomeNotStarted && r.Outcome != messages.OutcomeLost {
			return r
		}
		require.NotErrorIs(t, err, coppice.ErrClosed)
	}
}
