package result_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks/result"
)

// came is one way that a call can end: every text about it is made from these.
type came struct {
	reach messages.Reach
	stop  messages.Stop
	state messages.State
	first bool
	cells int
	begun int
}

func (c came) String() string {
	return fmt.Sprintf("%s, %s, state %q, first %v, %d of %d cells", c.reach, c.stop, c.state, c.first, c.begun, c.cells)
}

// outcomes are those that a stop leads to, of a call of which something ran and of one of
// which nothing did.
var outcomes = map[messages.Stop]struct{ ran, not messages.Outcome }{
	messages.StopTimeout:  {messages.OutcomeTimeout, messages.OutcomeTimeout},
	messages.StopDeadline: {messages.OutcomeTimeout, messages.OutcomeTimeout},
	messages.StopRuntime:  {messages.OutcomeTimeout, ""},
	messages.StopCancel:   {messages.OutcomeCancelled, messages.OutcomeCancelled},
	messages.StopRequest:  {"", messages.OutcomeNotStarted},
	messages.StopQueue:    {"", messages.OutcomeNotStarted},
	messages.StopStart:    {"", messages.OutcomeNotStarted},
	messages.StopFailed:   {"", messages.OutcomeNotStarted},
	messages.StopShutdown: {messages.OutcomeCancelled, messages.OutcomeNotStarted},
	messages.StopClosed:   {messages.OutcomeCancelled, messages.OutcomeNotStarted},
	messages.StopReset:    {messages.OutcomeCancelled, ""},
	messages.StopEvicted:  {messages.OutcomeCancelled, ""},
	messages.StopDied:     {messages.OutcomeLost, messages.OutcomeLost},
}

const limit = 500 * time.Millisecond

// result is the call that ended so; false: no call can.
func (c came) result() (messages.Result, bool) {
	o := outcomes[c.stop]
	outcome := o.ran
	if c.begun == 0 {
		outcome = o.not
	}
	waits := c.reach != messages.ReachSent && c.reach != messages.ReachBegun
	switch {
	case outcome == "" || waits == (c.begun > 0) || (c.reach == messages.ReachBegun) != (c.begun > 0):
		return messages.Result{}, false
	case c.begun > c.cells, c.begun == 0 && c.state != "" && outcome != messages.OutcomeLost, c.begun > 0 && c.state == "":
		return messages.Result{}, false
	case outcome == messages.OutcomeLost && (waits || c.state != messages.StateLost):
		return messages.Result{}, false
	case c.first && c.state == messages.StateKept: // kept from what
		return messages.Result{}, false
	}
	r := messages.Result{Outcome: outcome, State: c.state}
	r.Progress = messages.Progress{Reach: c.reach, Cells: c.cells, Begun: c.begun, Stop: c.stop, First: c.first}
	if c.stop == messages.StopTimeout || c.stop == messages.StopDeadline || c.stop == messages.StopRuntime {
		r.Progress.Limit = limit
	}
	if c.state == messages.StateLost || c.state == messages.StateFresh && !c.first {
		r.Reason = "the reason"
	}
	for i := range c.cells {
		switch {
		case i < c.begun-1:
			r.Cells = append(r.Cells, done("x"))
		case i < c.begun:
			r.Cells = append(r.Cells, ended(outcome, "y"))
		default:
			r.Cells = append(r.Cells, pending())
		}
	}
	return r, true
}

// combinations calls fn with every way that a call can end.
func combinations(fn func(came, messages.Result)) {
	reaches := []messages.Reach{messages.ReachUnsent, messages.ReachTurn, messages.ReachPlace, messages.ReachKernel, messages.ReachSent, messages.ReachBegun}
	for _, reach := range reaches {
		for stop := range outcomes {
			for _, state := range []messages.State{"", messages.StateKept, messages.StateFresh, messages.StateLost} {
				for _, first := range []bool{false, true} {
					for _, cells := range []int{1, 3} {
						for begun := range cells + 1 {
							c := came{reach, stop, state, first, cells, begun}
							if r, ok := c.result(); ok {
								fn(c, r)
							}
						}
					}
				}
			}
		}
	}
}

// TestEveryWayThatACallEnds: whatever a text says of time, of what ran and of variables is
// so, however far the call came, whatever ended it, and whatever was there before.
func TestEveryWayThatACallEnds(t *testing.T) {
	t.Parallel()
	n := 0
	seen := map[messages.Stop]bool{}
	combinations(func(c came, r messages.Result) {
		n++
		seen[c.stop] = true
		name, text := c.String(), result.BuildText(r)
		told := r.Err().Error() // the other text of the same
		timed := r.Progress.Limit > 0
		require.Equal(t, timed, strings.Contains(text, "after 0.5 seconds"), "%s: %s", name, text)
		require.Equal(t, c.stop == messages.StopDeadline, strings.Contains(text, "the deadline of its caller"), "%s: %s", name, text)
		require.Equal(t, r.Outcome == messages.OutcomeTimeout, strings.Contains(text, "timed out"), "%s: %s", name, text)

		not := strings.Contains(text, "not run.") || strings.Contains(text, "not run:") || strings.Contains(text, "not run;")
		if c.begun == 0 {
			require.True(t, not, "%s: %s", name, text)
			require.Contains(t, told, "not run", name)
			require.NotContains(t, text, "had effects", name)
		} else {
			require.NotContains(t, text, "code was not run.", name)
			require.NotContains(t, told, "not run", name)
			require.Equal(t, c.begun < c.cells, strings.Contains(text, "did not run.]"), "%s: %s", name, text)
		}

		gone := strings.Contains(text, "ariables of earlier calls are gone") || strings.Contains(text, "All variables are gone")
		lost := c.state == messages.StateLost || c.state == messages.StateFresh && c.begun > 0
		require.Equal(t, lost && !c.first, gone, "%s: %s", name, text)
		persist := strings.Contains(text, "state persists")
		require.False(t, persist && c.state == messages.StateLost, "%s: %s", name, text)
		if waiting := map[messages.Reach]string{
			messages.ReachTurn: "for earlier calls of its session", messages.ReachPlace: "for a place", messages.ReachKernel: "for its kernel",
		}[c.reach]; waiting != "" && r.Outcome != messages.OutcomeNotStarted {
			require.Contains(t, text, waiting, name)
		}
	})
	require.Len(t, seen, len(outcomes), "each stop must be reached")
	require.Greater(t, n, 150)
}

// TestWhatACallWaitedFor: a call that is stopped says how much of its time it had waited,
// and for what; one that was not stopped does not.
func TestWhatACallWaitedFor(t *testing.T) {
	t.Parallel()
	r := call(messages.OutcomeTimeout, ended(messages.OutcomeTimeout, ""))
	r.Progress = messages.Progress{Stop: messages.StopTimeout, Limit: 30 * time.Second, Waited: messages.Waited{
		Turn: 12 * time.Second, Place: 99 * time.Millisecond, Kernel: 1500 * time.Millisecond, Processor: 8 * time.Second,
	}}
	require.Equal(t, "Command timed out after 30 seconds\n\n[It waited 12 seconds for earlier calls of its session, 1.5 seconds for its kernel and 8 seconds for a processor.]", result.BuildText(r))
	r.Outcome, r.Cells[0] = messages.OutcomeOK, done("1")
	require.Equal(t, "1", result.BuildText(r))
}

// TestTwoCallsToldAsOne: of calls for a cell each, as the tool eval makes them, the text
// says of the later one what is so of it, and of the earlier one that it ran.
func TestTwoCallsToldAsOne(t *testing.T) {
	t.Parallel()
	first := messages.Progress{Reach: messages.ReachEnded, Begun: 1, Cells: 1, First: true}
	for name, tt := range map[string]struct {
		second messages.Progress
		out    messages.Outcome
		reason string
		want   string
	}{
		"no place": {
			messages.Progress{Reach: messages.ReachUnsent, Cells: 1, Stop: messages.StopQueue},
			messages.OutcomeNotStarted, "overloaded",
			"[1/2]\nx\n\nCell 2 was not run: overloaded. Earlier cells succeeded—their state persists.\n\n[Cell 2 did not run.]",
		},
		"no time": {
			messages.Progress{Reach: messages.ReachTurn, Cells: 1, Stop: messages.StopTimeout, Limit: limit},
			messages.OutcomeTimeout, "",
			"[1/2]\nx\n\nCell 2 was not run: Command timed out after 0.5 seconds. Earlier cells succeeded—their state persists.\n\n[Cell 2 did not run.]",
		},
	} {
		r := call(tt.out, done("x"), pending())
		r.State, r.Reason, r.Progress = messages.StateFresh, tt.reason, first.Then(tt.second)
		require.Equal(t, tt.want, result.BuildText(r), name)
		require.Error(t, r.Err())
	}
	var late *messages.TimeoutError
	r := call(messages.OutcomeTimeout, pending())
	r.Progress = messages.Progress{Reach: messages.ReachKernel, Stop: messages.StopDeadline, Limit: limit}
	require.ErrorAs(t, r.Err(), &late)
	require.Equal(t, "the time was up after 0.5 seconds (the deadline of its caller): it was still waiting for its kernel, and the code was not run", late.Error())
}
