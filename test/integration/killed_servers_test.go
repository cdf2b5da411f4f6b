//go:build linux

package integration_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
	"github.com/coppice-run/coppice/test/starve"
)

// counts is the code of each call: it tells whether the variables are those that the
// result says.
const counts = "try:\n    n += 1\nexcept NameError:\n    n = 1\nprint(n)"

// patient is how long each of the calls wants to wait.
const patient = 10 * time.Second

// faults is how a run with faults goes. COPPICE_TEST_FULL=1 asks for the long one.
type faults struct {
	sessions int
	every    time.Duration // a kill, after the process came up
	kills    int           // after which, and a call that went well, it is over; 0: it goes on
	lasts    time.Duration
	burners  int // processes that want a processor all the time
}

func faultsOf(sessions, kills, many int) faults {
	if !full() {
		return faults{sessions: sessions, every: 1500 * time.Millisecond, kills: kills, lasts: 3 * time.Minute}
	}
	return faults{sessions: many, every: 10 * time.Second, lasts: 3 * time.Minute, burners: 20}
}

// tally is what became of the calls of all sessions. Any goroutine may use it.
type tally struct {
	mu       sync.Mutex
	outcomes map[messages.Outcome]int
	untrue   []string
	reasons  map[string]int
	latest   time.Duration
	calls    int
	lost     int // timeouts that cost the state
}

func (t *tally) add(session int, took time.Duration, r messages.Result, untrue string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls++
	t.outcomes[r.Outcome]++
	t.latest = max(t.latest, took)
	if r.Outcome == messages.OutcomeTimeout && r.State == messages.StateLost {
		t.lost++
	}
	if r.Outcome != messages.OutcomeOK {
		t.reasons[string(r.Outcome)+": "+r.Reason]++
	}
	if untrue != "" {
		t.untrue = append(t.untrue, fmt.Sprintf("session %d: %s: %+v", session, untrue, r))
	}
}

// untrue says what of a result is not so, given the counter of the session before; it
// returns the counter as it is known then, -1 for not.
func untrue(r messages.Result, before int, lost bool) (after int, why string) {
	if r.State == messages.StateKept && lost {
		return -1, "a kernel that was lost serves again"
	}
	switch r.Outcome {
	case messages.OutcomeNotStarted:
		return before, ""
	case messages.OutcomeOK:
	default:
		return -1, ""
	}
	n, err := strconv.Atoi(strings.TrimSpace(r.Cells[0].Output))
	switch {
	case err != nil:
		return -1, "it printed no number"
	case r.State == messages.StateFresh && n != 1:
		return n, "a new kernel has variables"
	case r.State == messages.StateKept && before >= 0 && n != before+1:
		return n, fmt.Sprintf("it is %d after %d", n, before)
	}
	return n, ""
}

// The process that kernels come from is killed again and again: calls wait for it.
func TestCallsWaitForAServerThatIsKilled(t *testing.T) {
	for _, tc := range []struct {
		server                string
		sessions, kills, many int
		backend               coppice.Backend
	}{
		{"fork-server", 20, 3, 60, coppice.Runner(coppice.RunnerOptions{})},
		{"kernel-gateway", 2, 2, 9, backends.Named(backends.Gateway)},
	} {
		t.Run(tc.server, func(t *testing.T) {
			f := faultsOf(tc.sessions, tc.kills, tc.many)
			host := start(t, coppice.Options{Backend: tc.backend, MaxSessions: 2 * f.sessions})
			all := &tally{outcomes: map[messages.Outcome]int{}, reasons: map[string]int{}}
			starve.With(t, f.burners)
			// However busy the machine: the process is there when the time begins, and
			// the host gets over its deaths when it ends.
			answers := func() {
				patient := cells(counts)
				patient.Timeout = coppice.NoTimeout
				r, err := host.Session("patient").Execute(t.Context(), patient)
				require.NoError(t, err)
				require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)
			}
			answers()
			ctx, cancel := context.WithTimeout(t.Context(), f.lasts)
			defer cancel()
			var wg sync.WaitGroup
			for n := range f.sessions {
				wg.Go(func() { callAndCount(ctx, host, n, all) })
			}
			kills := 0
			wg.Go(func() {
				kills = killAgain(ctx, t, host, tc.server, f)
				cancel()
			})
			wg.Wait()

			refused := all.outcomes[messages.OutcomeNotStarted]
			t.Logf("%d kills, %d calls: %v; the latest answer after %v; %d untrue; %d timeouts with lost state; %v",
				kills, all.calls, all.outcomes, all.latest.Round(time.Millisecond), len(all.untrue), all.lost, all.reasons)
			require.Empty(t, all.untrue)
			require.GreaterOrEqual(t, kills, max(1, f.kills))
			answers()
			// One may be due to a kill that came while its time ended: of few calls that is much.
			require.LessOrEqual(t, (all.lost-1)*100, all.outcomes[messages.OutcomeTimeout], "more than 1 %% of the timeouts cost the state: %v", all.reasons)
			require.LessOrEqual(t, refused*50, all.calls, "more than 2 %% of the calls were refused: %v", all.reasons)
		})
	}
}

// callAndCount makes calls in sessions until ctx ends. Each session has a few calls:
// then another begins, so that there are always some that start.
func callAndCount(ctx context.Context, host *coppice.Host, n int, all *tally) {
	const each = 8
	for round := 0; ctx.Err() == nil; round++ {
		s := host.Session(fmt.Sprintf("%d-%d", n, round))
		counter, lost := 0, false
		for range each {
			if ctx.Err() != nil {
				break
			}
			c, cancel := context.WithTimeout(context.WithoutCancel(ctx), patient)
			begin := time.Now()
			r, _ := s.Execute(c, cells(counts)) // what is wrong is in the result
			cancel()
			why := ""
			counter, why = untrue(r, counter, lost)
			lost = r.State == messages.StateLost || lost && r.State == "" // else it has another one, whatever came of the call
			all.add(n, time.Since(begin), r, why)
			select {
			case <-time.After(100 * time.Millisecond): // a model thinks
			case <-ctx.Done():
			}
		}
		c, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		_ = s.Close(c) // a host that cannot do that fails the test at its end
		cancel()
	}
}

// killAgain kills the process of that name, each time when it has been up for a while,
// and returns how often it did. When that is enough it is up once more.
func killAgain(ctx context.Context, t *testing.T, host *coppice.Host, name string, f faults) int {
	last, kills := 0, 0
	for {
		select {
		case <-ctx.Done():
			return kills
		case <-time.After(50 * time.Millisecond):
		}
		tree, err := host.Snapshot(ctx)
		if err != nil {
			continue
		}
		pid := find(tree, name).PID
		if pid == 0 || pid == last {
			continue
		}
		select {
		case <-ctx.Done():
			return kills
		case <-time.After(f.every):
		}
		if f.kills > 0 && kills == f.kills {
			return kills
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Errorf("kill %s: %v", name, err)
		}
		last = pid
		kills++
	}
}
