package sim_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
)

const day = 24 * time.Hour

// soakSize is how many sessions a soak has, how many things happen in an hour on
// average, and how many kernels may live. COPPICE_TEST_FULL=1 asks for more.
func soakSize() (sessions int, perHour float64, capacity int) {
	switch {
	case os.Getenv("COPPICE_TEST_FULL") != "":
		return 10_000, 1000, 96
	case raceEnabled:
		return 1000, 25, 6
	default:
		return 10_000, 250, 36
	}
}

// Seven days: sessions come and go, more by day than by night. Some are used all
// the time, most are used once in a while, so that they are evicted between two
// calls. Interpreters crash, freeze and fail to start; people cancel, reset,
// close and pin.
func TestSoakOfSevenDays(t *testing.T) {
	t.Parallel()
	n, perHour, capacity := soakSize()
	o := settings{
		capacity: capacity, waiting: 4 * capacity, ttl: 5 * time.Minute, heartbeat: 2 * time.Minute, grace: 2 * time.Second, tick: 30 * time.Second,
		history: 40,
		faults:  faults{start: 4 * time.Second, close: 10 * time.Second, fail: 1, exhausted: 1, stubborn: 1},
	}
	w := storm(t, o, func(w *world, r *rand.Rand) {
		for at := time.Duration(0); at < 7*day; at += gap(r, at, perHour) {
			if !w.until(at) {
				return
			}
			w.live(r, fmt.Sprintf("s%d", visitor(r, n)))
		}
	})
	require.Equal(t, capacity, w.peak, "the days are too quiet")
	require.Greater(t, float64(len(w.order)), 7*24*perHour/2)
	for _, o := range []messages.Outcome{
		messages.OutcomeOK, messages.OutcomeError, messages.OutcomeLost, messages.OutcomeCancelled, messages.OutcomeTimeout,
	} {
		require.Positive(t, w.tally[o], "no call ended so: %s", o)
	}
}

// gap is the time to the next thing that happens: by day a tenth of what it is
// by night.
func gap(r *rand.Rand, at time.Duration, perHour float64) time.Duration {
	light := 0.55 - 0.45*math.Cos(2*math.Pi*at.Hours()/24)
	return time.Duration(r.ExpFloat64() * float64(time.Hour) / perHour / light * 0.55)
}

// visitor picks a session: every third time one of a few that are always busy.
func visitor(r *rand.Rand, n int) int {
	if r.IntN(3) == 0 {
		return r.IntN(20)
	}
	return r.IntN(n)
}

// live is one thing that happens to a session.
func (w *world) live(r *rand.Rand, session string) {
	switch n := r.IntN(100); {
	case n < 85:
		c := w.submit(session, soakCells(r), func(e *messages.Execute) {
			if chance(r, 10) {
				e.Timeout = 20*time.Second + upTo(r, 2*time.Minute)
			}
			e.Reset = chance(r, 2)
			if chance(r, 2) {
				e.Mode = messages.ModePerCall
			}
		}, 0)
		if chance(r, 5) {
			time.AfterFunc(upTo(r, time.Minute), func() { w.cancel(c) })
		}
	case n < 89:
		w.crash(session)
	case n < 91:
		w.freeze(session)
	case n < 94:
		w.pin(session, chance(r, 30))
	case n < 96:
		w.reset(session)
	case n < 98:
		w.close(session)
	case n < 99:
		w.poke(session, pokePanic)
	default:
		w.snapshot()
	}
}

// soakCells are those of a call: mostly short work, at times for half an hour.
func soakCells(r *rand.Rand) []messages.Cell {
	d := upTo(r, pick(r, time.Second, 10*time.Second, time.Minute))
	if chance(r, 2) {
		d = upTo(r, 30*time.Minute)
	}
	word := progRun
	switch n := r.IntN(100); {
	case n < 8:
		word = progRaise
	case n < 10:
		word = progDie
	case n < 12:
		word = progExit
	case n < 13:
		word = progDeaf
	}
	return []messages.Cell{program(progRun, upTo(r, time.Second)), program(word, d)}
}
