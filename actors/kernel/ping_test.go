package kernel_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/messages"
)

// An interpreter that has no processor is not heard of, whenever that begins, and lives.
func TestAStarvedInterpreterIsNotHung(t *testing.T) {
	for _, d := range []time.Duration{4 * time.Second, 13 * time.Second, time.Minute, 9 * time.Minute} {
		for _, begins := range []time.Duration{0, 4900 * time.Millisecond, 5100 * time.Millisecond, 6 * time.Second} {
			inTree(t, kernel.Options{}, func(t *testing.T, tr *tree) {
				tr.run("count")
				time.Sleep(begins)
				tr.backend.last().starve(d)
				time.Sleep(d + 20*time.Second)
				r := tr.run("count")
				require.Equal(t, messages.StateKept, r.State, "starved for %v after %v: %+v", d, begins, r)
				require.Equal(t, "2", r.Cells[0].Output)
			})
		}
	}
}

// One that has a processor and does not answer is ended when it always was, and one that
// stops to answer while it is starved when it has had its chance; nobody waits for ever.
func TestASilentInterpreterIsHung(t *testing.T) {
	for name, tc := range map[string]struct{ starved, soonest, latest time.Duration }{
		"with a processor":            {0, 10 * time.Second, 16 * time.Second},
		"without one for a minute":    {time.Minute, 65 * time.Second, 80 * time.Second},
		"without one for ever":        {time.Hour, 10 * time.Minute, 11 * time.Minute},
		"without one until it is due": {12 * time.Second, 17 * time.Second, 31 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inTree(t, kernel.Options{}, func(t *testing.T, tr *tree) {
				tr.run("count")
				first, begin := tr.backend.last(), time.Now()
				first.starve(tc.starved)
				first.mu.Lock()
				first.silent = true
				first.mu.Unlock()
				<-first.Done()
				require.GreaterOrEqual(t, time.Since(begin), tc.soonest)
				require.LessOrEqual(t, time.Since(begin), tc.latest)
				require.Equal(t, messages.StateFresh, tr.run("count").State)
			})
		})
	}
}

// betweenPings is a time in which an interpreter is not asked: half of a heartbeat.
const betweenPings = 2500 * time.Millisecond

// One that has nothing to do, and has answered its last call, is looked at: it is asked when it
// is seen to be stopped, and now and then. Its end is heard as ever. One in which a call has left
// something that runs is asked once more.
func TestAnIdleInterpreterIsLookedAt(t *testing.T) {
	counts := func(i *fakeInterp) (pings, looks int) {
		i.mu.Lock()
		defer i.mu.Unlock()
		return i.pings, i.looks
	}
	inTree(t, kernel.Options{Backend: &fakeBackend{looked: true}}, func(t *testing.T, tr *tree) {
		tr.run("count")
		first := tr.backend.last()
		time.Sleep(4*time.Minute + betweenPings) // one that comes during the next run is a ping more
		pings, looks := counts(first)
		require.Zero(t, pings, "it has answered")
		require.Greater(t, looks, 40)
		require.Equal(t, messages.StateKept, tr.run("count").State)
		time.Sleep(time.Minute)
		pings, _ = counts(first)
		require.Zero(t, pings)
		first.mu.Lock()
		first.busy = true
		first.mu.Unlock()
		tr.run("count")
		time.Sleep(time.Minute)
		pings, _ = counts(first)
		require.Equal(t, 1, pings)
		time.Sleep(10 * time.Minute)
		pings, _ = counts(first)
		require.Equal(t, 3, pings, "what cannot be seen is asked for, every five minutes")
		first.mu.Lock()
		first.silent = true
		first.mu.Unlock()
		begin := time.Now()
		<-first.Done()
		require.LessOrEqual(t, time.Since(begin), 16*time.Second)
		require.Equal(t, messages.StateFresh, tr.run("count").State)
	})
}
