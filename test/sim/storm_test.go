package sim_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
)

// crowd is how many sessions a storm has.
func crowd() int {
	switch {
	case !raceEnabled:
		return 10_000
	case os.Getenv("COPPICE_TEST_FULL") != "":
		return 1000
	default:
		return 400
	}
}

// names are those of n sessions.
func names(n int) []string {
	s := make([]string, n)
	for i := range s {
		s[i] = fmt.Sprintf("s%d", i)
	}
	return s
}

// storm runs f in a world and checks what is left. It returns the world.
func storm(t *testing.T, o settings, f func(*world, *rand.Rand)) *world {
	t.Helper()
	began := time.Now()
	var w *world
	var took time.Duration
	o.loose = crowd() > 4000 // the gateway remembers the past of some 4,000 sessions
	synctest.Test(t, func(t *testing.T) {
		w = newWorld(t, 1, o)
		defer w.shutdown()
		f(w, rand.New(rand.NewPCG(1, 2)))
		w.waiters.Wait()
		took = w.now()
	})
	t.Logf("%d calls in %d interpreters, at most %d at once: %v; %v of virtual time in %v",
		len(w.order), w.made, w.peak, w.tally, took.Round(time.Second), time.Since(began).Round(time.Millisecond))
	require.Empty(t, w.verdict())
	return w
}

// Interpreters of 10,000 sessions die under their calls, between them and while
// they start. Every call has one true answer.
func TestCrashStorm(t *testing.T) {
	t.Parallel()
	n := crowd()
	w := storm(t, settings{
		capacity: n, ttl: time.Hour, heartbeat: 30 * time.Second, grace: time.Second, tick: 10 * time.Second, history: 40,
		faults: faults{start: 2 * time.Second, close: time.Second, fail: 2},
	}, func(w *world, r *rand.Rand) {
		sessions := names(n)
		for range 4 {
			for _, s := range sessions {
				w.submit(s, []messages.Cell{program(progRun, upTo(r, time.Second))}, nil, 0)
			}
			for range 100 {
				if !w.until(w.now() + 20*time.Millisecond) {
					return
				}
				for range n / 100 {
					w.crash(pick(r, sessions...))
				}
			}
		}
	})
	require.Len(t, w.order, 4*n)
	for _, o := range []messages.Outcome{messages.OutcomeOK, messages.OutcomeLost} {
		require.Greater(t, w.tally[o], n/10, "the storm misses: %v", w.tally)
	}
	require.Zero(t, w.tally[messages.OutcomeCancelled]+w.tally[messages.OutcomeTimeout])
}

// 10,000 sessions share 64 places. Nobody is refused, and every call runs.
func TestEvictionStorm(t *testing.T) {
	t.Parallel()
	n, rounds := crowd(), 3
	w := storm(t, settings{
		capacity: 64, waiting: n, ttl: time.Hour, heartbeat: time.Minute, grace: time.Second, tick: 10 * time.Second, history: 40,
		faults: faults{start: 500 * time.Millisecond, close: time.Second},
	}, func(w *world, r *rand.Rand) {
		for range rounds {
			for _, i := range r.Perm(n) {
				w.submit(fmt.Sprintf("s%d", i), []messages.Cell{program(progRun, upTo(r, 100*time.Millisecond))}, nil, 0)
			}
			if !w.until(w.now() + 20*time.Second) {
				return
			}
		}
	})
	require.Equal(t, map[messages.Outcome]int{messages.OutcomeOK: rounds * n}, w.tally)
	require.Equal(t, 64, w.peak)
}
