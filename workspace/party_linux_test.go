package workspace_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/workspace"
)

// shell starts a script in a folder that stands for something of a backend: what is written to the
// second result is its standard input.
func shell(t *testing.T, own *process.Owner, dir, script string) (*process.Process, io.WriteCloser) {
	t.Helper()
	in, write, err := os.Pipe()
	require.NoError(t, err)
	p, err := process.Start(process.Options{Path: "/bin/sh", Args: []string{"-c", script}, Env: os.Environ(), Dir: dir, Stdin: in, Owner: own})
	require.NoError(t, err)
	require.NoError(t, in.Close())
	return p, write
}

// living are the processes that have a mark.
func living(t *testing.T, m process.Mark) map[int]bool {
	t.Helper()
	marked, err := process.Marked(m)
	require.NoError(t, err)
	pids := map[int]bool{}
	for _, id := range marked {
		pids[id.PID] = true
	}
	return pids
}

// TestACellThatHasStartedTooMuchLeavesNothing: a kernel is stopped that has started more
// daemons than there may be processes, and goes on doing so for a while. When its cell has
// ended nothing of them is left, the kernel lives, and so does what another kernel of the
// workspace has started.
func TestACellThatHasStartedTooMuchLeavesNothing(t *testing.T) {
	own, mark, dir := owner(t), process.NewMark(), t.TempDir()
	w := startIn(t, own, workspace.Place{Mark: mark}, workspace.SetOptions{})
	defer w.stop(t)
	one := w.open(t, "a", workspace.Options{Total: workspace.Total{Processes: 20}})
	beside, end := shell(t, own, dir, "read go; (setsid sleep 600 &); read end")
	one.Began(kernel.Info{PID: beside.PID()}, func(messages.ResourceLimitExceeded) { t.Error("another kernel was stopped") })
	_, err := io.WriteString(end, "go\n")
	require.NoError(t, err)
	var kept map[int]bool
	require.Eventually(t, func() bool { // what starts the daemon has ended
		kept = living(t, mark)
		for pid := range kept {
			args, err := process.Arguments(pid)
			if pid != beside.PID() && (err != nil || len(args) == 0 || args[0] != "sleep") {
				return false
			}
		}
		return len(kept) == 2
	}, time.Minute, time.Millisecond)

	bomb, stop := shell(t, own, dir, "read go; trap 'touch heeded; read end; exit' INT; while true; do (setsid sleep 600 &); done")
	stopped := make(chan messages.ResourceLimitExceeded, 100)
	one.Began(kernel.Info{PID: bomb.PID()}, func(met messages.ResourceLimitExceeded) {
		select {
		case stopped <- met:
		default:
		}
	})
	begin := time.Now()
	_, err = io.WriteString(stop, "go\n")
	require.NoError(t, err)
	met := <-stopped
	require.Equal(t, messages.LimitProcesses, met.Limit)
	require.Eventually(t, func() bool { // a shell loses a signal that comes while it starts a program
		if _, err := os.Stat(filepath.Join(dir, "heeded")); err == nil {
			return true
		}
		_ = bomb.Signal(os.Interrupt) // what becomes of it is looked at next
		return false
	}, time.Minute, 100*time.Millisecond)
	one.Stopped(bomb.PID(), met, false)
	kept[bomb.PID()] = true
	require.Equal(t, kept, living(t, mark))
	require.Equal(t, messages.LimitProcesses, one.Met(bomb.PID(), begin, nil).Limit)
	require.Nil(t, one.Met(beside.PID(), begin, nil), "it was not the other's")
	require.Nil(t, one.Ended(bomb.PID(), begin), "it was stopped, and lives")
	require.NoError(t, stop.Close())
	require.NoError(t, end.Close())
	<-bomb.Done()
	<-beside.Done()
}

// brood is a backend with kernels that no one has begun.
type brood struct{ from process.Identity }

func (b brood) Brood() (from process.Identity, waiting []int) { return b.from, nil }

// TestWhatWaitsToBecomeAKernelIsNotEnded: a process that starts too much is stopped, and not
// the kernels that wait, though there are more of them.
func TestWhatWaitsToBecomeAKernelIsNotEnded(t *testing.T) {
	const waiting = 10
	own, mark := owner(t), process.NewMark()
	server, end := shell(t, own, t.TempDir(), "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 600 & done; read end; kill $(jobs -p)")
	var made []process.Identity
	require.Eventually(t, func() bool {
		var err error
		made, err = process.Descendants(server.Identity())
		return err == nil && len(made) == waiting
	}, time.Minute, time.Millisecond)
	for _, id := range made {
		require.NoError(t, process.SetMark(id.PID, mark))
	}
	w := startIn(t, own, workspace.Place{Mark: mark, Brood: brood{server.Identity()}}, workspace.SetOptions{}.ByLooks())
	defer w.stop(t)
	one := w.open(t, "a", workspace.Options{Total: workspace.Total{Processes: waiting + 4}})
	p, err := one.Start(t.Context(), script("for i in 1 2 3 4 5; do (setsid sleep 600 &); done; sleep 600"))
	require.NoError(t, err)
	exit, err := p.Wait(t.Context())
	require.NoError(t, err)
	require.Contains(t, exit.Reason, "ResourceLimitExceeded: processes: ")
	require.Eventually(t, func() bool { return len(living(t, mark)) == waiting }, time.Minute, time.Millisecond)
	for _, id := range made {
		require.True(t, process.Alive(id))
	}
	require.NoError(t, end.Close())
	<-server.Done()
}

// TestAKernelThatIsEndedForMemoryIsKnown: whoever asks afterwards learns of the limit, as
// long as it is about that kernel.
func TestAKernelThatIsEndedForMemoryIsKnown(t *testing.T) {
	t.Run("as it is", func(t *testing.T) { endedForMemory(t, workspace.SetOptions{}) })
	t.Run("looks", func(t *testing.T) { endedForMemory(t, workspace.SetOptions{}.ByLooks()) })
}

func endedForMemory(t *testing.T, so workspace.SetOptions) {
	t.Helper()
	own := owner(t)
	w := startWith(t, own, so)
	defer w.stop(t)
	one := w.open(t, "a", workspace.Options{Total: workspace.Total{Memory: 64 << 20}})
	begin := time.Now()
	small, end := shell(t, own, t.TempDir(), "read end")
	one.Began(kernel.Info{PID: small.PID()}, func(messages.ResourceLimitExceeded) {})
	big, write := shell(t, own, t.TempDir(), "read go; exec tail < /dev/zero")
	one.Began(kernel.Info{PID: big.PID()}, func(messages.ResourceLimitExceeded) {})
	_, err := io.WriteString(write, "go\n")
	require.NoError(t, err)
	<-big.Done()
	met := one.Ended(big.PID(), begin)
	require.NotNil(t, met)
	require.Equal(t, messages.LimitMemory, met.Limit)
	if strings.Contains(one.Info().Kept, "a control group") { // which ends all of the workspace
		<-small.Done()
		require.Equal(t, met, one.Ended(small.PID(), begin))
	} else {
		require.True(t, process.Alive(small.Identity()))
		require.Nil(t, one.Ended(small.PID(), begin))
	}
	require.Nil(t, one.Ended(big.PID(), time.Now()), "another kernel of the same number, later")
	require.NoError(t, write.Close())
	require.NoError(t, end.Close())
	<-small.Done()
}
