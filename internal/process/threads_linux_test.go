package process

import (
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestParseSchedstat(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Thread{
		"5000000000 70 9\n":        {Ran: 5 * time.Second, Waited: 70, Turns: 9, Counted: true},
		"0 0 1\n":                  {Turns: 1, Counted: true},
		"0 0 0\n":                  {}, // it is not counted
		"":                         {},
		"1 2":                      {},
		"1 2 x":                    {},
		"-1 2 3":                   {},
		"18446744073709551615 0 1": {},
	} {
		var got Thread
		got.Ran, got.Waited, got.Turns, got.Counted = parseSchedstat([]byte(text))
		require.Equal(t, want, got, text)
	}
}

func TestParseThreadState(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]ThreadState{
		statLine: Wanting, "1 (a) R 2) S 5": Asleep, "1 (a) D 5": OnDisk, "1 (a) t 5": Halted, "1 (a) T 5": Halted,
		"1 (a) Z 5": Over, "1 (a) X 5": Over, "1 (a) I 5": Asleep,
	} {
		got, err := parseThreadState([]byte(line))
		require.NoError(t, err, line)
		require.Equal(t, want, got, line)
	}
	for _, line := range []string{"", "1 a S", "1 (a)", "1 (a) "} {
		_, err := parseThreadState([]byte(line))
		require.EqualError(t, err, "no state in the stat line", line)
	}
}

func FuzzParseSchedstat(f *testing.F) {
	f.Add([]byte("5000000000 70 9\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		ran, waited, turns, counted := parseSchedstat(b)
		if ran < 0 || waited < 0 || counted != (turns > 0) {
			t.Fatalf("%v, %v, %d, %v from %q", ran, waited, turns, counted, b)
		}
	})
}

// TestThreads follows a process through what it can be doing.
func TestThreads(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", "read line; while :; do :; done")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	id, err := Identify(cmd.Process.Pid)
	require.NoError(t, err)
	is := func(want ThreadState) func() bool {
		return func() bool {
			threads, err := Threads(id)
			return err == nil && len(threads) == 1 && threads[0].ID == id.PID && threads[0].State == want
		}
	}
	const within, every = 30 * time.Second, time.Millisecond
	require.Eventually(t, is(Asleep), within, every, "it waits for a line")
	_, err = in.Write([]byte("\n"))
	require.NoError(t, err)
	require.Eventually(t, is(Wanting), within, every, "it runs, or waits for its turn")
	before, err := Threads(id)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		now, err := Threads(id)
		return err == nil && now[0].Ran > before[0].Ran
	}, within, every)
	require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
	require.Eventually(t, is(Halted), within, every)
	_, err = Threads(Identity{PID: id.PID, Start: "another"})
	require.ErrorIs(t, err, ErrNoProcess, "its number alone is not enough")
	require.NoError(t, cmd.Process.Signal(os.Kill))
	require.Eventually(t, func() bool { _, err := Threads(id); return err != nil }, within, every, "it has ended, though nobody knows yet")
	_, err = Threads(id)
	require.ErrorIs(t, err, ErrNoProcess)
	require.Error(t, cmd.Wait())
	_, err = Threads(id)
	require.ErrorIs(t, err, ErrNoProcess)
}

// TestThreadsUnderSignals: a signal that is to be delivered, as the runtime sends many, ends
// the listing of a folder early, and says nothing of who is in it.
func TestThreadsUnderSignals(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", "read line")
	_, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	id, err := Identify(cmd.Process.Pid)
	require.NoError(t, err)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	thread := unix.Gettid()
	over := make(chan struct{})
	var sends sync.WaitGroup
	for range 2 {
		sends.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
					_ = unix.Tgkill(os.Getpid(), thread, unix.SIGURG) // which the runtime takes for its own
				}
			}
		})
	}
	for range 1_000 {
		threads, err := Threads(id)
		if err != nil || len(threads) != 1 {
			require.NoError(t, err)
			require.Len(t, threads, 1)
		}
	}
	close(over)
	sends.Wait()
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
}

// The first thread comes first, and their number is bounded.
func TestThreadsOfMany(t *testing.T) {
	t.Parallel()
	self, err := Identify(os.Getpid())
	require.NoError(t, err)
	threads, err := Threads(self)
	require.NoError(t, err)
	require.Equal(t, self.PID, threads[0].ID)
	require.LessOrEqual(t, len(threads), MostThreads)
	require.Greater(t, len(threads), 1)
}
