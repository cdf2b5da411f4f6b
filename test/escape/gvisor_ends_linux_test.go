package escape_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/proc"
	"github.com/coppice-run/coppice/test/testpython"
	"github.com/coppice-run/coppice/workspace"
)

// many60 starts sixty processes.
const many60 = "import os, time\nfor _ in range(60):\n    if os.fork() == 0:\n        os.setsid(); time.sleep(60); os._exit(0)\ntime.sleep(60)"

// TestLimitsInSandboxes: what meets a limit of its session, or of its workspace, is told with
// the limit's name, and the next call goes on.
func TestLimitsInSandboxes(t *testing.T) {
	if lacksGVisor(t) {
		return
	}
	h := host(t, python(t), kernel.IsolationGVisor, shared(t), func(o *coppice.Options) { o.Home, o.MaxSessions = shared(t), 8 })
	many, err := h.Workspace(t.Context(), "many", workspace.Options{Total: workspace.Total{Processes: 30}})
	require.NoError(t, err)
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
		{many, messages.LimitProcesses, many60},
		{each, messages.LimitProcesses, many60},
		{brief, messages.LimitCPU, "while True: pass"},
		{brief, messages.LimitCPU, "sum(range(10**14))"}, // native code, which hears nothing of it
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

// TestLimitsOfKernelsInSandboxes: the same of kernels of a gateway, for the limits that they have;
// also native code, which hears no interrupt, ends for them.
func TestLimitsOfKernelsInSandboxes(t *testing.T) {
	if lacksGVisor(t) {
		return
	}
	h := host(t, testpython.Path(t), kernel.IsolationGVisor, shared(t), func(o *coppice.Options) {
		o.Home, o.MaxSessions, o.InterruptGrace = shared(t), 8, time.Second
		o.Backend = coppice.Gateway(coppice.GatewayOptions{WarmKernels: -1})
	})
	brief, err := h.Workspace(t.Context(), "brief", workspace.Options{Limits: coppice.Limits{Runtime: 2 * time.Second}})
	require.NoError(t, err)
	many, err := h.Workspace(t.Context(), "many", workspace.Options{Total: workspace.Total{Processes: 30}})
	require.NoError(t, err)
	few, err := h.Workspace(t.Context(), "few", workspace.Options{Limits: coppice.Limits{Files: 40}})
	require.NoError(t, err)
	all, err := h.Workspace(t.Context(), "all", workspace.Options{Total: workspace.Total{Memory: 500 << 20, Output: 1 << 20}, Quota: 8 << 20})
	require.NoError(t, err)
	for _, c := range []struct {
		in    *workspace.Workspace
		limit messages.Limit
		code  string
	}{
		{brief, messages.LimitRuntime, "while True: pass"},
		{brief, messages.LimitRuntime, "sum(range(10**14))"},
		{many, messages.LimitProcesses, many60},
		{few, messages.LimitFiles, "all = []\nwhile True: all.append(open('/dev/null'))"},
		{all, messages.LimitMemory, "import time\nb = []\nwhile True: b.append(bytearray(b'x') * (8 << 20)); time.sleep(0.02)"},
		{all, messages.LimitOutput, "while True: print('x' * 1000)"},
		{all, messages.LimitDisk, "import time\nfor i in range(40): open(f'f{i}', 'wb').write(bytes(1 << 20))\ntime.sleep(60)"},
	} {
		s := h.Session("s", coppice.InWorkspace(c.in.Name()))
		begun := time.Now()
		r := try(t, s, c.code, false)
		require.NotNil(t, r.Exceeded, "%s of %s: %s %s", c.limit, c.in.Name(), r.Outcome, r.Text)
		require.Equal(t, c.limit, r.Exceeded.Limit, r.Text)
		require.Contains(t, r.Text, string(c.limit))
		t.Logf("LIMIT %s of a kernel in a sandbox: %s after %v: %v", c.limit, r.Outcome, time.Since(begun).Round(time.Millisecond), r.Exceeded)
		recovers(t, c.in, s)
	}
}

// TestProcessorsOfSandboxes: what is in the sandboxes of a workspace gets the part of a processor
// that the workspace may have, sessions, kernels and programs alike.
func TestProcessorsOfSandboxes(t *testing.T) {
	if lacksGVisor(t) {
		return
	}
	const part = 0.2
	for name, o := range map[string]struct {
		python  string
		backend coppice.Backend
	}{
		"runner":  {python(t), coppice.Runner(coppice.RunnerOptions{Spares: -1})},
		"gateway": {testpython.Path(t), coppice.Gateway(coppice.GatewayOptions{WarmKernels: -1})},
	} {
		t.Run(name, func(t *testing.T) { //nolint:paralleltest // it is about the time that others take
			h := host(t, o.python, kernel.IsolationGVisor, shared(t), func(all *coppice.Options) { all.Home, all.Backend = shared(t), o.backend })
			w, err := h.Workspace(t.Context(), "w", workspace.Options{Total: workspace.Total{Processors: part}})
			if err != nil {
				require.ErrorContains(t, err, "a limit of processors needs a control group")
				t.Logf("not tried: %v", err)
				return
			}
			require.Contains(t, w.Info().Kept, "processors by a control group")
			r := call(t, h.Session("s", coppice.InWorkspace("w")), "import time\nbegun, used = time.monotonic(), time.process_time()\nwhile time.monotonic() < begun + 5: pass\n(time.process_time() - used) / (time.monotonic() - begun)")
			require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)
			before := used(t, os.Getpid())
			begun := time.Now()
			r = call(t, h.Session("s", coppice.InWorkspace("w")), "begun = time.monotonic()\nwhile time.monotonic() < begun + 5: pass")
			require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)
			got := float64(used(t, os.Getpid())-before) / float64(time.Since(begun))
			t.Logf("LIMIT processors on the %s: a loop in a sandbox that may have %v of one had %.2f", name, part, got)
			require.Less(t, got, 2*part)
		})
	}
}

// used is the processor time of all that a process has started and that lives.
func used(t *testing.T, pid int) time.Duration {
	t.Helper()
	const tick = 10 * time.Millisecond
	sum := 0
	for _, p := range proc.Below(pid) {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID))
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(data), ") ")
		f := strings.Fields(rest)
		for _, field := range f[11:13] { // in itself, and in the system
			n, err := strconv.Atoi(field)
			require.NoError(t, err)
			sum += n
		}
	}
	return time.Duration(sum) * tick
}

// TestASandboxThatEnds: the sessions of a sandbox are lost with it, also when one of them ends
// it, and the next call has another; nothing of it is left.
func TestASandboxThatEnds(t *testing.T) {
	if lacksGVisor(t) {
		return
	}
	for name, o := range map[string]struct {
		python  string
		backend coppice.Backend
	}{
		"runner":  {python(t), coppice.Runner(coppice.RunnerOptions{})},
		"gateway": {testpython.Path(t), coppice.Gateway(coppice.GatewayOptions{WarmKernels: -1})},
	} {
		t.Run(name, func(t *testing.T) { endsASandbox(t, o.python, o.backend) }) //nolint:paralleltest // it looks at all sandboxes
	}
}

func endsASandbox(t *testing.T, python string, backend coppice.Backend) {
	t.Helper()
	dir := shared(t)
	h := host(t, python, kernel.IsolationGVisor, dir, func(o *coppice.Options) { o.Backend = backend })
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
