//go:build linux

package runner_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/actors/kernel/runner"
	"github.com/coppice-run/coppice/messages"
)

// running is a cell that runs in a goroutine of its own.
type running struct {
	printed chan string
	result  chan seen
}

// background starts a cell. What it prints is sent to printed.
func background(tb testing.TB, i kernel.Interpreter, code string) *running {
	tb.Helper()
	r := &running{printed: make(chan string, 100), result: make(chan seen, 1)}
	go func() { // ends with the cell; result is its join
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		var s seen
		s.CellReply, s.err = i.Execute(ctx, kernel.CellRequest{Code: code}, func(_ context.Context, e messages.Event) error {
			s.events = append(s.events, e)
			if text, ok := e.(messages.Stream); ok {
				select {
				case r.printed <- text.Text:
				default:
				}
			}
			return nil
		})
		r.result <- s
	}()
	return r
}

func (r *running) waitFor(tb testing.TB, text string) {
	tb.Helper()
	select {
	case got := <-r.printed:
		require.Equal(tb, text, got)
	case s := <-r.result:
		require.FailNow(tb, "the cell ended", "%+v %v", s, s.err)
	case <-time.After(patience):
		require.FailNow(tb, "nothing was printed")
	}
}

func (r *running) end(tb testing.TB) seen {
	tb.Helper()
	select {
	case s := <-r.result:
		return s
	case <-time.After(patience):
		require.FailNow(tb, "the cell did not end")
		return seen{}
	}
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, code string }{
		{"a loop", "print('go')\nwhile True: pass"},
		{"sleep", "import time\nprint('go')\ntime.sleep(100)"},
		{"await", "import asyncio\nprint('go')\nawait asyncio.sleep(100)"},
		{"a coroutine that computes", "async def f():\n    print('go')\n    while True: pass\nawait f()"},
		{"a child", "import subprocess\nprint('go')\nsubprocess.run(['sleep', '100'])"},
		{"a system call with a shell", "import os\nprint('go')\nos.system('sleep 100')"},
		{"a shell and what it started", "import os\nprint('go')\nos.system('sleep 100; echo never')"},
		{"a lock", "import threading\nlock = threading.Lock()\nlock.acquire()\nprint('go')\nlock.acquire()"},
		{"a thread that is joined", "import threading, time\nt = threading.Thread(target=time.sleep, args=(5,), daemon=True)\nt.start()\nprint('go')\nt.join()"},
		{"a queue", "import queue\nprint('go')\nqueue.Queue().get()"},
		{"a read of a pipe", "import os\nr, w = os.pipe()\nprint('go')\nos.read(r, 1)"},
		{"a repr", "class A:\n    def __repr__(self):\n        print('go')\n        while True: pass\nA()"},
		{"a handler of its own in an earlier cell", "print('go')\nwhile True: pass"},
		{"the second interrupt counts", "try:\n    print('go')\n    while True: pass\nexcept KeyboardInterrupt:\n    print('once')\n    while True: pass"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			i := session(t)
			ok(t, i, "import signal\nkept = 'kept'\n_ = signal.signal(signal.SIGINT, signal.SIG_IGN)")
			cell := background(t, i, tt.code)
			cell.waitFor(t, "go\n")
			require.NoError(t, i.Interrupt(t.Context()))
			if tt.name == "the second interrupt counts" {
				cell.waitFor(t, "once\n")
				require.NoError(t, i.Interrupt(t.Context()))
			}
			stop := func() {}
			if strings.Contains(tt.code, "os.system") {
				stop = again(t, i)
			}
			got := cell.end(t)
			stop()
			require.NoError(t, got.err)
			require.False(t, got.OK, got.text())
			require.True(t, got.Interrupted)
			require.Equal(t, "KeyboardInterrupt", got.Error.Name)
			require.Equal(t, "=> 'kept'", ok(t, i, "kept").text())
		})
	}
}

// again interrupts every half second until stop is called, as the kernel actor
// does: an interrupt that comes just before a shell is there is lost.
func again(t *testing.T, i kernel.Interpreter) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var joined sync.WaitGroup
	joined.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(500 * time.Millisecond):
				_ = i.Interrupt(ctx) // the end of the cell is what counts
			}
		}
	})
	return func() { cancel(); joined.Wait() }
}

func TestInterruptThatIsCaught(t *testing.T) {
	t.Parallel()
	i := session(t)
	cell := background(t, i, "try:\n    print('go')\n    while True: pass\nexcept KeyboardInterrupt:\n    print('caught')\n'done'")
	cell.waitFor(t, "go\n")
	require.NoError(t, i.Interrupt(t.Context()))
	got := cell.end(t)
	require.True(t, got.OK)
	require.False(t, got.Interrupted)
	require.Equal(t, "go\ncaught\n=> 'done'", got.text())
}

func TestInterruptCancelsTheTask(t *testing.T) {
	t.Parallel()
	i := session(t)
	cell := background(t, i, "import asyncio\nasync def f():\n    try:\n        print('go')\n        await asyncio.sleep(100)\n    finally:\n        await asyncio.sleep(0.01)\n        print('cleaned')\nawait f()")
	cell.waitFor(t, "go\n")
	require.NoError(t, i.Interrupt(t.Context()))
	got := cell.end(t)
	require.True(t, got.Interrupted)
	require.Equal(t, "go\ncleaned\n", got.text())
}

// TestInterruptOfNothing: an idle session takes no interrupt, nor does a signal
// from outside harm it, and the next cell is not hit.
func TestInterruptOfNothing(t *testing.T) {
	t.Parallel()
	i := session(t)
	for range 50 {
		require.NoError(t, i.Interrupt(t.Context()))
		require.NoError(t, syscall.Kill(i.Info().PID, syscall.SIGINT))
		ok(t, i, "1")
	}
}

// TestInterruptsNeverHitAnotherCell sends interrupts all the time while short
// cells run: each cell ends well or was interrupted, none is lost, and no
// interrupt stays behind.
func TestInterruptsNeverHitAnotherCell(t *testing.T) {
	t.Parallel()
	i := session(t)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = i.Interrupt(context.Background()) // the cell may have ended meanwhile
			}
		}
	})
	for range 300 {
		s := run(t, i, "print('x')\nsum(range(2000))")
		require.NoError(t, s.err)
		require.True(t, s.OK || s.Interrupted, "%+v", s.Error)
		require.Empty(t, s.Incomplete)
	}
	close(stop)
	wg.Wait()
	require.Equal(t, "=> 5", ok(t, i, "import time\ntime.sleep(0.05)\n5").text())
}

func TestExecuteGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	i := session(t)
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err := i.Execute(ctx, kernel.CellRequest{Code: "print('go')\nwhile True: pass"}, func(context.Context, messages.Event) error {
		cancel(enough)
		return nil
	})
	require.ErrorIs(t, err, enough)
}

func TestPing(t *testing.T) {
	t.Parallel()
	i := session(t)
	require.NoError(t, i.Ping(t.Context()))
	require.Positive(t, i.RSS())
	cell := background(t, i, "print('go')\nwhile True: pass")
	cell.waitFor(t, "go\n")
	for range 20 {
		require.NoError(t, i.Ping(t.Context()))
	}
	require.NoError(t, i.Interrupt(t.Context()))
	cell.end(t)

	// Native code that holds the interpreter's lock.
	cell = background(t, i, "import ctypes\nprint('go')\n_ = ctypes.PyDLL(None).usleep(1500000)")
	cell.waitFor(t, "go\n")
	require.NoError(t, i.Ping(t.Context()), "it is busy, not gone")
	require.True(t, cell.end(t).OK)

	// The same in a thread, while no cell runs: it sleeps, and is not starved.
	ok(t, i, "import threading, time\nthreading.Thread(target=lambda: (time.sleep(.5), ctypes.PyDLL(None).usleep(4000000)), daemon=True).start()")
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return errors.Is(i.Ping(ctx), context.DeadlineExceeded)
	}, 3*time.Minute, 50*time.Millisecond)
	require.NoError(t, i.Ping(t.Context()), "it is there again")
}

// TestNativeFlood: native code that holds the interpreter's lock prints more
// than a pipe holds. Nothing in the process can read it.
func TestNativeFlood(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]*forks{"forked": shared.get(), "started": plain.get()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := sessionOn(t, f, runner.Options{}, kernel.StartOptions{})
			got := ok(t, i, "import ctypes\nlibc = ctypes.PyDLL(None)\nline = b'x' * 99 + b'\\n'\nfor _ in range(3):\n    n = libc.write(1, line * 3000, 300000)\n    assert n == 300000, n")
			require.Len(t, got.stream(messages.StdoutStream), 900000)
		})
	}
}
