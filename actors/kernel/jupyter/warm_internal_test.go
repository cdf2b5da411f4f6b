//go:build linux

package jupyter

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/proc"
	"github.com/coppice-run/coppice/test/testpython"
)

const warmMark = "PI_COPPICE_TEST_WARM"

// warmed is a backend on a gateway of its own, with kernels that wait. At the end
// of the test none is left.
type warmed struct {
	*Backend
	server  *Server
	gateway int // its pid
}

func newWarmed(t *testing.T, warm, limit int) warmed {
	t.Helper()
	return newWarmedWith(t, ServerOptions{Warm: warm, MaxKernels: limit})
}

func newWarmedWith(t *testing.T, o ServerOptions) warmed {
	t.Helper()
	mark := messages.NewID()
	o.Python, o.Home, o.Env = testpython.Path(t), t.TempDir(), append(os.Environ(), warmMark+"="+mark)
	s := NewServer(o)
	ctx, cancel := context.WithCancel(context.Background())
	up, ended := make(chan int, 1), make(chan error, 1)
	go func() { ended <- s.Run(ctx, func(pid int) { up <- pid }) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
		require.Empty(t, proc.WithEnv(warmMark, mark))
	})
	select {
	case pid := <-up:
		return warmed{New(Options{Server: s}), s, pid}
	case err := <-ended:
		require.NoError(t, err)
		return warmed{}
	}
}

// pool waits until the pool holds so many kernels and is at rest, and returns
// their ids.
func (w warmed) pool(t *testing.T, size int) []string {
	t.Helper()
	e, err := w.server.Endpoint(t.Context(), messages.SessionKey{})
	require.NoError(t, err)
	var ids []string
	require.Eventually(t, func() bool {
		e.warm.mu.Lock()
		defer e.warm.mu.Unlock()
		ids = nil
		for _, k := range e.warm.ready {
			if k.Err() == nil {
				ids = append(ids, k.ID())
			}
		}
		return len(ids) == size && !e.warm.starting
	}, 2*time.Minute, 20*time.Millisecond, "%d kernels wait", len(ids))
	return ids
}

// kernels are the processes of kernels.
func (w warmed) kernels(t *testing.T) []process.Identity {
	t.Helper()
	id, err := process.Identify(w.gateway)
	require.NoError(t, err)
	all, err := process.Descendants(id)
	require.NoError(t, err)
	return slices.DeleteFunc(all, func(id process.Identity) bool { // what they are forked from
		args, err := process.Arguments(id.PID)
		return err == nil && slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, "kernel-zygote") })
	})
}

func (w warmed) session(t *testing.T, name string) *Interpreter {
	t.Helper()
	i, err := w.Start(t.Context(), kernel.StartOptions{Key: messages.SessionKey{Session: name, Cwd: t.TempDir()}})
	require.NoError(t, err)
	own, ok := i.(*Interpreter)
	require.True(t, ok)
	return own
}

// call makes a session run a cell.
func call(t *testing.T, i *Interpreter) {
	t.Helper()
	reply, err := i.Execute(t.Context(), kernel.CellRequest{Code: "1"}, func(context.Context, messages.Event) error { return nil })
	require.NoError(t, err)
	require.True(t, reply.OK)
}

func end(t *testing.T, all ...*Interpreter) {
	t.Helper()
	for _, i := range all {
		require.NoError(t, i.Close(t.Context()))
	}
}

// A session gets the kernel that waits, another one takes its place, and there are
// never more than the capacity allows.
func TestASessionTakesAKernelThatWaits(t *testing.T) {
	t.Parallel()
	w := newWarmed(t, 1, 2)
	first := w.pool(t, 1)
	a := w.session(t, "a")
	require.Equal(t, first[0], a.info.ID)
	require.NotZero(t, a.info.PID, "it was prepared like any other")
	require.Never(t, func() bool { return len(w.kernels(t)) > 1 }, 3*warmCalm, 50*time.Millisecond, "a was not slowed in its first cell")
	call(t, a)
	second := w.pool(t, 1)
	require.NotEqual(t, first, second)
	b := w.session(t, "b")
	require.Equal(t, second[0], b.info.ID)
	call(t, b)
	require.Empty(t, w.pool(t, 0))
	require.Never(t, func() bool { return len(w.kernels(t)) > 2 }, 600*time.Millisecond, 100*time.Millisecond, "the sessions have all places")
	end(t, a)
	require.Len(t, w.pool(t, 1), 1, "there is a place again")
	end(t, b)
}

// Sessions that come at once do not wait for each other: one gets the kernel that
// waits, the others start theirs.
func TestSessionsThatComeAtOnce(t *testing.T) {
	t.Parallel()
	w := newWarmed(t, 1, 3)
	got := make([]*Interpreter, 3)
	var starting sync.WaitGroup
	for n := range got {
		starting.Go(func() {
			i, err := w.Start(t.Context(), kernel.StartOptions{Key: messages.SessionKey{Session: string(rune('a' + n))}})
			if err == nil {
				got[n], _ = i.(*Interpreter)
			}
		})
	}
	starting.Wait()
	ids := map[string]bool{}
	for _, i := range got {
		require.NotNil(t, i)
		ids[i.info.ID] = true
	}
	require.Len(t, ids, 3)
	require.Empty(t, w.pool(t, 0))
	end(t, got...)
}

// A kernel that died while it waited, or that does not answer, is not handed out.
func TestAKernelThatDiedWaiting(t *testing.T) {
	t.Parallel()
	w := newWarmed(t, 1, 4)
	first := w.pool(t, 1)
	require.NoError(t, syscall.Kill(w.kernels(t)[0].PID, syscall.SIGKILL))
	var second []string
	require.Eventually(t, func() bool {
		second = w.pool(t, 1)
		return second[0] != first[0]
	}, time.Minute, 20*time.Millisecond, "another takes its place")

	frozen := w.kernels(t)
	for _, k := range frozen {
		require.NoError(t, syscall.Kill(k.PID, syscall.SIGSTOP))
		require.Eventually(t, func() bool { // until then it may answer
			threads, err := process.Threads(k)
			return err == nil && !slices.ContainsFunc(threads, func(t process.Thread) bool { return t.State != process.Halted })
		}, time.Minute, time.Millisecond)
	}
	i := w.session(t, "a")
	require.NotEqual(t, second[0], i.info.ID)
	require.Eventually(t, func() bool { return !slices.ContainsFunc(frozen, process.Alive) }, time.Minute, 20*time.Millisecond, "the frozen one is ended")
	end(t, i)
}

// A pool that was not asked for costs the first session nothing, and nothing at all
// as long as no session begins.
func TestALazyPool(t *testing.T) {
	t.Parallel()
	w := newWarmedWith(t, ServerOptions{Warm: 1, MaxKernels: 4, WarmLazy: true, WarmIdle: 3 * time.Second})
	require.Never(t, func() bool { return len(w.kernels(t)) > 0 }, 3*warmCalm, 50*time.Millisecond, "no session has begun")
	a := w.session(t, "a")
	require.Never(t, func() bool { return len(w.kernels(t)) > 1 }, 3*warmCalm, 50*time.Millisecond, "a has not answered")
	call(t, a)
	first := w.pool(t, 1)
	require.Empty(t, w.pool(t, 0), "no session began for long")
	require.Eventually(t, func() bool { return len(w.kernels(t)) == 1 }, time.Minute, 20*time.Millisecond)
	call(t, a)
	b := w.session(t, "b")
	require.NotEqual(t, first[0], b.info.ID)
	call(t, b)
	require.Len(t, w.pool(t, 1), 1, "sessions begin again")
	end(t, a, b)
}
