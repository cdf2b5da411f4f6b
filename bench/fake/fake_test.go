package fake_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/bench/fake"
	"github.com/coppice-run/coppice/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, o fake.Options) *fake.Host {
	t.Helper()
	h, err := fake.Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.True(t, h.Shutdown(context.Background()).Clean()) })
	return h
}

func TestCallsAreAnsweredAndCrashesAreTold(t *testing.T) {
	h := start(t, fake.Options{})
	s := h.Session("a")
	r, err := s.Execute(t.Context(), "1+1")
	require.NoError(t, err)
	require.Equal(t, "2", r.Text)
	require.Equal(t, messages.StateFresh, r.State)
	r, err = s.Execute(t.Context(), "die")
	require.NoError(t, err)
	require.Equal(t, messages.OutcomeLost, r.Outcome)
	r, err = s.Execute(t.Context(), "17")
	require.NoError(t, err)
	require.Equal(t, "17", r.Text)
	require.Equal(t, messages.StateFresh, r.State)
	require.EqualValues(t, 2, h.Made())
	require.EqualValues(t, 1, h.Died())
	require.NoError(t, h.Check())
	require.NoError(t, s.Close(t.Context()))
}

// Many more sessions than places, a tenth of the calls crash: every call gets one
// result, its own, and none runs twice or out of order.
func TestAStormOfCrashesAndEvictions(t *testing.T) {
	h := start(t, fake.Options{MaxSessions: 20})
	var wg sync.WaitGroup
	for i := range 200 {
		s := h.Session(fmt.Sprint(i))
		for j := range 10 {
			wg.Go(func() {
				code, text := fmt.Sprint(j), fmt.Sprint(j)
				if (i+j)%10 == 0 {
					code, text = "die", ""
				}
				r, err := s.Execute(t.Context(), code)
				if err != nil || r.Text != text && r.Outcome == messages.OutcomeOK {
					t.Errorf("%v %+v", err, r)
				}
			})
		}
	}
	wg.Wait()
	require.NoError(t, h.Check())
	require.EqualValues(t, 200, h.Died())
	node, err := h.Snapshot(t.Context())
	require.NoError(t, err)
	require.LessOrEqual(t, len(node.Children[0].Children), 200)
}

// What supervision costs is paid for every call. The number is what it takes now;
// whoever lowers it lowers it here too.
func TestAllocationsOfACall(t *testing.T) {
	s := start(t, fake.Options{}).Session("a")
	require.LessOrEqual(t, testing.AllocsPerRun(500, func() {
		if _, err := s.Execute(t.Context(), "1+1"); err != nil {
			t.Error(err)
		}
	}), 60.0) // 55 without the race detector, which keeps pools from keeping all; the look at a call that takes long has two of them
}

// All sessions answer and live on while others are made, a snapshot has them all, and those
// that are too many end in the order of their use. The bound of memory tells a session that
// holds a buffer of its own; what one takes exactly is for the suite to say.
func TestManySessions(t *testing.T) {
	n := 3000
	if os.Getenv("COPPICE_TEST_FULL") != "" {
		n = 100_000
	}
	var evicted atomic.Int64
	h := start(t, fake.Options{MaxSessions: n, OnEvent: func(e messages.Lifecycle) {
		if c, ok := e.(messages.ChildChanged); ok && c.To == messages.ChildGone && c.Exit != nil && c.Exit.Kind == messages.ExitEvicted {
			evicted.Add(1)
		}
	}})
	live := func(from, to int) {
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				for i := from + w; i < to; i += 8 {
					if r, err := h.Session(fmt.Sprint(i)).Execute(t.Context(), "1+1"); err != nil || r.Text != "2" || r.State != messages.StateFresh {
						t.Errorf("session %d: %v %+v", i, err, r)
						return
					}
				}
			})
		}
		wg.Wait()
	}
	live(0, 100)
	before := heap()
	live(100, n)
	each := (heap() - before) / float64(n-100)
	node := whole(t, h, n)
	began := time.Now()
	live(n, n+n/10)
	took := time.Since(began)
	node = whole(t, h, n)
	require.EqualValues(t, n/10, evicted.Load())
	names := map[string]bool{}
	for _, c := range node.Children[0].Children {
		names[c.Name] = true
	}
	require.NotContains(t, names, "9@/", "those whose use was longest ago have ended")
	require.Contains(t, names, fmt.Sprint(n+n/10-1)+"@/")
	require.NoError(t, h.Check())
	t.Logf("%d sessions: %.0f bytes of heap each, %v for an eviction with its start", n, each, (took / time.Duration(n/10)).Round(time.Microsecond))
	require.Less(t, each, 24.0*1024)
}

// whole is a snapshot that has so many sessions: on a busy machine a supervisor may not answer
// in the second that one takes at most.
func whole(t *testing.T, h *fake.Host, n int) (node messages.Node) {
	t.Helper()
	require.Eventually(t, func() bool {
		var err error
		node, err = h.Snapshot(t.Context())
		return err == nil && alive(node) == n
	}, time.Minute, time.Millisecond)
	return node
}

// alive is how many sessions a snapshot has; the nodes themselves would fill a failure.
func alive(root messages.Node) int { return len(root.Children[0].Children) }

// heap is what is in use after everything that is not has been found.
func heap() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapInuse + m.StackInuse)
}
