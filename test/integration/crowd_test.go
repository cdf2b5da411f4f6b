//go:build linux

package integration_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
)

func TestFiftySessionsDoNotMix(t *testing.T) {
	host := start(t, coppice.Options{MaxSessions: 50, StartTimeout: 3 * time.Minute})
	var wg sync.WaitGroup
	for n := range 50 {
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
	require.Len(t, kernels(t, host), 50)
}

// TestEveryClaimIsTrueWhileKernelsAreKilled runs 200 cells in 20 sessions while
// random kernels are killed. Each session counts in its kernel, and the count
// must agree with what each result claims about the state.
func TestEveryClaimIsTrueWhileKernelsAreKilled(t *testing.T) {
	const sessions, calls = 20, 10
	host := start(t, coppice.Options{MaxSessions: sessions, StartTimeout: 3 * time.Minute})

	stop := make(chan struct{})
	var killer sync.WaitGroup
	killed := 0
	killer.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(200+rand.IntN(400)) * time.Millisecond):
			}
			for _, pid := range kernels(t, host) { // map order is random
				if syscall.Kill(pid, syscall.SIGKILL) == nil {
					killed++
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
			for i := range calls {
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
	t.Logf("%d kernels killed, outcomes %v", killed, outcomes)
	require.Equal(t, sessions*calls, outcomes[messages.OutcomeOK]+outcomes[messages.OutcomeLost]+outcomes[messages.OutcomeNotStarted])
	require.NotZero(t, killed)
}
