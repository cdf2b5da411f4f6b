package gateway_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/gateway"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// One timer serves all deadlines: each call ends at its own, in whatever order they
// come, and also when the call that the timer was set for has long ended.
func TestEachCallEndsAtItsOwnDeadline(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		begin := time.Now()
		limits := []int{0, 9, 3, 30, 3, 6, 1, 12} // seconds; 0: none, and the call ends by itself
		replies := make([]supervisor.Reply[messages.Result], len(limits))
		for i, limit := range limits {
			code := "sleep 1h"
			switch limit {
			case 0:
				code = "sleep 20s"
			case 1:
				code = "x" // the earliest deadline is of a call that keeps it
			}
			c := call(fmt.Sprint(i), fmt.Sprint("s", i%3), code)
			if limit > 0 {
				c.Timeout = time.Duration(limit) * time.Second
				c.Deadline = begin.Add(c.Timeout)
			}
			if limit == 1 {
				c.Key = key("free")
			}
			replies[i] = tr.begin(c)
		}
		for _, end := range []struct {
			i, at   int
			outcome messages.Outcome
		}{
			{6, 1, messages.OutcomeOK},      // a kernel takes a second to start, which does not count
			{4, 4, messages.OutcomeTimeout}, // it waited
			{2, 4, messages.OutcomeTimeout}, // it ran
			{5, 7, messages.OutcomeTimeout},
			{1, 10, messages.OutcomeTimeout},
			{7, 13, messages.OutcomeTimeout},
			{0, 21, messages.OutcomeOK},
			{3, 31, messages.OutcomeTimeout},
		} {
			require.Equal(t, end.outcome, tr.wait(replies[end.i]).Outcome, end.i)
			require.InDelta(t, end.at, time.Since(begin).Seconds(), 0.1, end.i)
		}
	})
}

// The timer stays where it is for a call with a later deadline, and for one without.
func TestALaterDeadlineDoesNotHoldUpAnEarlierOne(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		for _, session := range []string{"a", "b", "c"} {
			tr.run(session, "x")
		}
		none := tr.begin(call("none", "c", "sleep 1h"))
		time.Sleep(time.Minute)
		begun := time.Now()
		early, late := call("early", "a", "sleep 1h"), call("late", "b", "sleep 1h")
		early.Deadline, late.Deadline = begun.Add(3*time.Second), begun.Add(30*time.Second)
		replies := []supervisor.Reply[messages.Result]{tr.begin(early), tr.begin(late), none}
		for i, at := range []time.Duration{3 * time.Second, 30 * time.Second, 59 * time.Minute} {
			tr.wait(replies[i])
			require.Equal(t, at, time.Since(begun))
		}
	})
}

// While its kernel starts, a call's time stands still. While the process is away that
// kernels come from, it waits for as long as it has time, and says what for.
func TestACallWaitsForTheProcessForAsLongAsItHasTime(t *testing.T) {
	for name, tc := range map[string]struct {
		away, start time.Duration // away negative: never
		outcome     messages.Outcome
		at          time.Duration
		reason      string
	}{
		"a long start":                {away: -1, start: time.Minute, outcome: messages.OutcomeOK, at: time.Minute},
		"it comes back in time":       {start: 9 * time.Second, outcome: messages.OutcomeOK, at: 9 * time.Second},
		"it does not":                 {start: time.Hour, outcome: messages.OutcomeTimeout, at: 10 * time.Second, reason: "it was still waiting for its kernel, and the code was not run; its kernel was waiting for the shared process, which is started again: it was killed; make the call again, and run coppice doctor if it lasts"},
		"it dies under a long start":  {away: 30 * time.Second, start: time.Hour, outcome: messages.OutcomeTimeout, at: 30 * time.Second, reason: "it was still waiting for its kernel, and the code was not run; its kernel was waiting"},
		"it dies when time is left":   {away: 5 * time.Second, start: time.Hour, outcome: messages.OutcomeTimeout, at: 10 * time.Second, reason: "it was still waiting for its kernel, and the code was not run; its kernel was waiting"},
		"and is back before it is up": {away: 5 * time.Second, start: 8 * time.Second, outcome: messages.OutcomeOK, at: 8 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
				tr.start = tc.start
				if tc.away >= 0 {
					tr.away = &tc.away
				}
				begin := time.Now()
				c := call("1", "a", "x")
				c.Deadline = begin.Add(10 * time.Second)
				r := tr.wait(tr.begin(c))
				require.Equal(t, tc.outcome, r.Outcome, r.Reason)
				require.InDelta(t, tc.at, time.Since(begin), float64(300*time.Millisecond))
				require.Contains(t, r.Reason, tc.reason)
			})
		})
	}
}

// TestWhatACallThatIsCancelledWaitedFor is told.
func TestWhatACallThatIsCancelledWaitedFor(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		never := 2 * time.Hour
		tr.away, tr.start = &never, time.Hour
		waits := tr.begin(call("1", "a", "x"))
		time.Sleep(time.Minute)
		tr.ref().Tell(messages.Interrupt{Key: key("a"), Exec: "1", Cause: messages.CauseCancelled})
		r := tr.wait(waits)
		require.Equal(t, messages.OutcomeCancelled, r.Outcome)
		require.Contains(t, r.Reason, "; its kernel was still starting (waiting for the shared process, ")
		require.NotContains(t, r.Reason, "more time", "whoever gave it up did not want to wait")
	})
}
