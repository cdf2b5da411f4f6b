package sim_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
)

// TestSim runs the schedules of a set of seeds, or of -seed alone.
func TestSim(t *testing.T) {
	if *seedFlag != 0 {
		w := simulate(t, generate(*seedFlag))
		t.Log("\n" + w.histories())
		require.Empty(t, w.verdict())
		return
	}
	for seed := range seeds(t) {
		t.Run(fmt.Sprint(seed+1), func(t *testing.T) {
			t.Parallel()
			require.Empty(t, simulate(t, generate(seed+1)).verdict())
		})
	}
}

// seeds is how many TestSim runs.
func seeds(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("COPPICE_SIM_SEEDS")
	switch {
	case text != "":
	case raceEnabled && os.Getenv("COPPICE_TEST_FULL") == "":
		return 60
	default:
		return 150
	}
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, "COPPICE_SIM_SEEDS is a number of seeds")
	return n
}

// simulate runs a schedule to its end, or to its first breach.
func simulate(t *testing.T, s schedule) *world {
	t.Helper()
	var w *world
	synctest.Test(t, func(t *testing.T) {
		w = newWorld(t, s.seed, s.o)
		defer w.shutdown()
		var calls []*call
		drained := s.drain == 0
		for _, a := range s.actions {
			if !drained && a.at >= s.end-s.drain {
				drained = true
				w.drain()
			}
			if !w.until(a.at) {
				return
			}
			calls = w.do(a, calls)
		}
		w.until(s.end)
	})
	return w
}

// until waits for an instant. False: an invariant was broken before.
func (w *world) until(at time.Duration) bool {
	if at <= w.now() {
		select {
		case <-w.broken:
			return false
		default:
			return true
		}
	}
	timer := time.NewTimer(at - w.now())
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-w.broken:
		return false
	}
}

// do does one thing, and does not wait for what comes of it.
func (w *world) do(a action, calls []*call) []*call {
	switch a.what {
	case "submit":
		calls = append(calls, w.submit(a.session, a.submit.cells, func(e *messages.Execute) {
			e.Timeout, e.Reset, e.Owner = a.submit.timeout, a.submit.reset, a.submit.owner
			if a.submit.perCall {
				e.Mode = messages.ModePerCall
			}
		}, a.submit.pause))
	case "cancel":
		w.cancel(calls[a.call])
	case "crash":
		w.crash(a.session)
	case "stall":
		w.stall(a.length)
	case "starve":
		w.starve(a.session, a.length)
	case "freeze":
		w.freeze(a.session)
	case "pin", "unpin":
		w.pin(a.session, a.what == "pin")
	case "reset":
		w.reset(a.session)
	case "close":
		w.close(a.session)
	case "interrupt":
		w.interrupt(a.session)
	case "release":
		w.release(owners[1+a.call%2])
	case "panic":
		w.poke(a.session, pokePanic)
	case "goexit":
		w.poke(a.session, pokeGoexit)
	case "snapshot":
		w.snapshot()
	}
	return calls
}
