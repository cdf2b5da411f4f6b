//go:build linux

package integration_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
)

func TestFiftySessionsDoNotMix(t *testing.T) {
	for _, backend := range backends.All() {
		t.Run(backend, func(t *testing.T) {
			sessions := 50
			if backend == backends.Gateway && !full() { // a Jupyter kernel costs a second of processor time
				sessions = 3
			}
			notMixed(t, start(t, coppice.Options{Backend: backends.Named(backend), MaxSessions: sessions}), sessions)
		})
	}
}

func notMixed(t *testing.T, host *coppice.Host, sessions int) {
	t.Helper()
	var wg sync.WaitGroup
	for n := range sessions {
		wg.Go(func() {
			s := session(host, n)
			for round := range 3 {
				r, err := s.Execute(t.Context(), cells(fmt.Sprintf("mine = globals().get('mine', []) + [%d]", n), "print(mine)"))
				if err != nil || r.Outcome != messages.OutcomeOK {
					t.Errorf("session %d round %d: %v %s", n, round, err, r.Text)
					return
				}
				want := "[" + strings.TrimSuffix(strings.Repeat(fmt.Sprintf("%d, ", n), round+1), ", ") + "]"
				if got := strings.TrimSpace(r.Cells[1].Output); got != want {
					t.Errorf("session %d round %d: %s, want %s", n, round, got, want)
				}
				if want := map[bool]messages.State{true: messages.StateFresh, false: messages.StateKept}[round == 0]; r.State != want {
					t.Errorf("session %d round %d: state %s, want %s", n, round, r.State, want)
				}
			}
		})
	}
	wg.Wait()
	require.Len(t, kernels(t, host), sessions)
}

// TestEveryClaimIsTrueWhileKernelsAreKilled runs 200 cells in 20 sessions, on the
// gateway fewer unless all is run, while random kernels are killed. Each session counts
// in its kernel, and the count must agree with what each result claims about the state.
func TestEveryClaimIsTrueWhileKernelsAreKilled(t *testing.T) {
	for _, backend := range backends.All() {
		t.Run(backend, func(t *testing.T) {
			sessions, calls := 20, 10
			if backend == backends.Gateway && !full() {
				sessions, calls = 2, 4
			}
			claimed(t, start(t, coppice.Options{Backend: backends.Named(backend), MaxSessions: sessions}), sessions, calls)
		})
	}
}

// claimed makes so many calls in each session, or more: until a kernel was killed for
// each two sessions.
func claimed(t *testing.T, host *coppice.Host, sessions, calls int) {
	t.Helper()
	stop := make(chan struct{})
	var killer sync.WaitGroup
	var killed atomic.Int64
	enough := func() bool { return killed.Load() >= int64(max(1, sessions/2)) }
	killer.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(200+rand.IntN(400)) * time.Millisecond):
			}
			for _, pid := range kernels(t, host) { // map order is random
				if syscall.Kill(pid, syscall.SIGKILL) == nil {
					killed.Add(1)
				}
				break
			}
		}
	})

	var wg sync.WaitGroup
	var mu sync.Mutex
	outcomes := map[messages.Outcome]int{}
	for n := range sessions {
		wg.Go(func() {
			s := session(host, n)
			count := 0 // what the kernel's counter is, as far as results have said
			for i := 0; i < calls || !enough(); i++ {
				r, err := s.Execute(t.Context(), cells("import time\ncount = globals().get('count', 0) + 1\ntime.sleep(0.05)\nprint(count)"))
				if _, refused := errors.AsType[*messages.NotStartedError](err); err != nil && !refused {
					t.Errorf("session %d call %d: %v", n, i, err)
					return
				}
				mu.Lock()
				outcomes[r.Outcome]++
				mu.Unlock()
				switch r.Outcome {
				case messages.OutcomeOK:
					got, err := strconv.Atoi(strings.TrimSpace(strings.SplitN(r.Cells[0].Output, "\n", 2)[0]))
					// A kernel that dies after its last cell has counted on, or was a new one.
					good := r.State != messages.StateFresh && got == count+1 || r.State != messages.StateKept && got == 1
					if err != nil || !good {
						t.Errorf("session %d call %d claims %s and counts %d after %d (%v)\n%s", n, i, r.State, got, count, err, r.Text)
					}
					count = got
					if r.State == messages.StateLost {
						count = 0
					}
				case messages.OutcomeLost:
					if r.State != messages.StateLost {
						t.Errorf("session %d call %d: lost, but the state is %s", n, i, r.State)
					}
					count = 0
				case messages.OutcomeNotStarted:
					// failed for good: two deaths without a completed call
					if !strings.Contains(r.Reason, "reset") && !strings.Contains(r.Reason, "start") {
						t.Errorf("session %d call %d: %s", n, i, r.Reason)
					}
					if err := s.Reset(t.Context()); err != nil {
						t.Errorf("session %d: reset: %v", n, err)
					}
					count = 0
				default:
					t.Errorf("session %d call %d: outcome %s: %s", n, i, r.Outcome, r.Text)
				}
			}
		})
	}
	wg.Wait()
	close(stop)
	killer.Wait()
	t.Logf("%d kernels killed, outcomes %v", killed.Load(), outcomes)
	require.GreaterOrEqual(t, outcomes[messages.OutcomeOK]+outcomes[messages.OutcomeLost]+outcomes[messages.OutcomeNotStarted], sessions*calls)
	require.Positive(t, outcomes[messages.OutcomeOK])
	require.True(t, enough())
}
