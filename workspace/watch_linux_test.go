package workspace_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/testpython"
	"github.com/coppice-run/coppice/workspace"
)

// owner owns the processes of workspaces, as that of a host does: only a process that has
// one is marked before its code begins.
func owner(t *testing.T) *process.Owner {
	t.Helper()
	var o process.Owner
	o.Use(testpython.Path(t))
	t.Cleanup(func() { require.NoError(t, o.Close(context.Background())) })
	return &o
}

// TestTheLimitsOfAWorkspaceAsAWhole has processes pass each of them: each is told which
// it was, and a process beside them that keeps to them goes on. Where there are control groups, they
// are kept to by these, and then without.
func TestTheLimitsOfAWorkspaceAsAWhole(t *testing.T) {
	for name, o := range map[string]workspace.SetOptions{"as it is": {}, "looks": workspace.SetOptions{}.ByLooks()} {
		t.Run(name, func(t *testing.T) { limitsAsAWhole(t, o) })
	}
}

func limitsAsAWhole(t *testing.T, so workspace.SetOptions) {
	t.Helper()
	w := startWith(t, owner(t), so)
	defer w.stop(t)
	for name, tt := range map[string]struct {
		o      workspace.Options
		script string
		told   string
	}{
		"memory":    {workspace.Options{Total: workspace.Total{Memory: 64 << 20}}, "head -c 1000000000 /dev/zero | tail; sleep 600", "ResourceLimitExceeded: memory: the workspace memory had "},
		"one":       {workspace.Options{Total: workspace.Total{Memory: 64 << 20}}, "exec tail < /dev/zero", "ResourceLimitExceeded: memory: the workspace one had "},
		"processes": {workspace.Options{Total: workspace.Total{Processes: 20}}, "i=0; while [ $i -lt 60 ]; do setsid sleep 600 & i=$((i+1)); done; wait", "ResourceLimitExceeded: processes: the workspace processes had "},
		"daemons":   {workspace.Options{Total: workspace.Total{Processes: 20}}, "while true; do (setsid sleep 600 &); done", "ResourceLimitExceeded: processes: the workspace daemons had "},
		"output":    {workspace.Options{Total: workspace.Total{Output: 1 << 20}}, "yes", "ResourceLimitExceeded: output: it printed more than 1048576 bytes"},
		"disk":      {workspace.Options{Quota: 4 << 20}, "i=0; while true; do head -c 1000000 /dev/zero > f$i; i=$((i+1)); done", "ResourceLimitExceeded: disk: the workspace disk had "},
		"file":      {workspace.Options{Quota: 4 << 20}, "exec cat /dev/zero > f", "ResourceLimitExceeded: disk: a file would have become longer than 4194304 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			one := w.open(t, name, tt.o)
			beside, err := w.open(t, name+"-beside", workspace.Options{}).Start(t.Context(), script("sleep 600"))
			require.NoError(t, err)
			p, err := one.Start(t.Context(), script(tt.script))
			require.NoError(t, err)
			if name == "memory" { // its biggest process is not the one that was started
				require.Eventually(t, func() bool { return one.Info().Usage.Ends > 0 }, time.Minute, 5*time.Millisecond)
				require.Contains(t, one.Info().Usage.Last, tt.told)
				_, ended := p.Exit()
				require.False(t, ended)
			} else {
				exit, err := p.Wait(t.Context())
				require.NoError(t, err)
				require.Contains(t, exit.Reason, tt.told)
			}
			_, ended := beside.Exit()
			require.False(t, ended)
			if tt.o.Total.Processes > 0 { // and nothing is left that it has started, also while it was ended
				require.Eventually(t, func() bool { u := one.Info().Usage; return u.Ends > 0 && u.Processes == 0 }, time.Minute, 5*time.Millisecond)
			}
			require.Equal(t, tt.o.Total != (workspace.Total{}) && tt.o.Total.Output == 0, one.Info().Kept != "", one.Info().Kept)
		})
	}
	for _, total := range []workspace.Total{{Memory: -1}, {Processors: math.NaN()}} {
		_, err := w.Open(t.Context(), "negative", workspace.Options{Total: total})
		require.ErrorContains(t, err, "negative")
	}
}

// TestWhatTheSystemHasEnded is told by what was met first, where that is known.
func TestWhatTheSystemHasEnded(t *testing.T) {
	both := workspace.Total{Memory: 64 << 20, Processes: 20}
	require.Equal(t, messages.LimitMemory, workspace.EndedFor(both, false).Limit)
	require.Equal(t, messages.LimitProcesses, workspace.EndedFor(both, true).Limit)
	require.Contains(t, workspace.EndedFor(both, true).Detail, "more than 64 MiB of memory by then")
	require.Equal(t, messages.LimitMemory, workspace.EndedFor(workspace.Total{Memory: 64 << 20}, true).Limit, "there is no other")
}

// TestWhatAWorkspaceUsesIsSeen counts what a mark and descent tell to be together.
func TestWhatAWorkspaceUsesIsSeen(t *testing.T) {
	w := startWith(t, owner(t), workspace.SetOptions{})
	defer w.stop(t)
	one := w.open(t, "a", workspace.Options{Total: workspace.Total{Memory: 1 << 40}})
	away := filepath.Join(t.TempDir(), "away")
	p, err := one.Start(t.Context(), script("sleep 600 & (setsid sh -c '>"+away+"; exec sleep 600' &); wait"))
	require.NoError(t, err)
	require.Eventually(t, func() bool { _, err := os.Stat(away); return err == nil }, time.Minute, 5*time.Millisecond, "it has left the group")
	require.Eventually(t, func() bool { u := one.Info().Usage; return u.Processes == 3 && u.Memory > 0 }, time.Minute, 5*time.Millisecond)
	require.NoError(t, p.Stop(t.Context(), "enough", -1))
	require.Eventually(t, func() bool { return one.Info().Usage.Processes == 1 }, time.Minute, 5*time.Millisecond, "what has left the group goes on")
	require.True(t, process.Tallies)
	require.NoError(t, one.End(t.Context()))
}

// TestTheLimitsOfSandboxes: where the processes of this system are what sandboxes run in, the sandbox
// that has most is ended, with all that it runs in.
func TestTheLimitsOfSandboxes(t *testing.T) {
	var counts sync.Map // by process
	w := startIn(t, owner(t), workspace.Place{Inside: true, Count: func(_ context.Context, pid int) (int, error) {
		n, ok := counts.Load(pid)
		if !ok {
			return 0, process.ErrNoProcess
		}
		return n.(int), nil
	}}, workspace.SetOptions{})
	defer w.stop(t)
	begin := func(in *workspace.Workspace, text string) *workspace.Process {
		p, err := in.Start(t.Context(), script(text))
		require.NoError(t, err)
		return p
	}
	reason := func(p *workspace.Process) string {
		exit, err := p.Wait(t.Context())
		require.NoError(t, err)
		return exit.Reason
	}
	many := w.open(t, "many", workspace.Options{Total: workspace.Total{Processes: 30}})
	few, most := begin(many, "sleep 600"), begin(many, "sleep 600")
	counts.Store(few.PID(), 10)
	counts.Store(most.PID(), 21)
	require.Contains(t, reason(most), "ResourceLimitExceeded: processes: the workspace many had 31 processes together, and may have 30 processes: the sandbox with most of them was ended, with 21")
	_, ended := few.Exit()
	require.False(t, ended)
	require.Contains(t, many.Info().Kept, "which are those that its sandboxes run in")

	large := w.open(t, "large", workspace.Options{Total: workspace.Total{Memory: 64 << 20}})
	small, big := begin(large, "sleep 600"), begin(large, "head -c 1000000000 /dev/zero | tail; sleep 600")
	require.Contains(t, reason(big), "ResourceLimitExceeded: memory: the workspace large had ", "also where another process of it has the memory")
	_, ended = small.Exit()
	require.False(t, ended)
}
