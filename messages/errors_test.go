package messages_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
)

func TestErr(t *testing.T) {
	t.Parallel()
	ran := []messages.CellResult{{Status: messages.CellError}}
	waited := []messages.CellResult{{Status: messages.CellPending}}
	raised := []messages.CellResult{{Status: messages.CellComplete, Outcome: messages.OutcomeOK}, {Index: 1, Status: messages.CellError, Outcome: messages.OutcomeError, Error: &messages.ErrorDetails{
		Name: "ValueError", Message: "no\nmore", ErrorPlace: messages.ErrorPlace{Filename: "<cell 2>", Line: 3},
	}}}
	for name, c := range map[string]struct {
		r    messages.Result
		as   func(error) bool
		is   error
		text string
	}{
		"ok":                     {r: messages.Result{Outcome: messages.OutcomeOK}},
		"raised":                 {messages.Result{Outcome: messages.OutcomeError, Cells: raised}, is[*messages.CodeError], nil, "ValueError: no (<cell 2>, line 3)"},
		"program":                {messages.Result{Outcome: messages.OutcomeError, Cells: []messages.CellResult{{Outcome: messages.OutcomeError, ExitCode: new(7)}}}, is[*messages.CodeError], nil, "the code ended with exit code 7"},
		"timeout":                {messages.Result{Outcome: messages.OutcomeTimeout, Cells: ran}, is[*messages.TimeoutError], context.DeadlineExceeded, "the time was up while the code ran"},
		"timeout, new kernel":    {messages.Result{Outcome: messages.OutcomeTimeout, State: messages.StateFresh, Cells: ran, Reason: "it died before"}, is[*messages.TimeoutError], context.DeadlineExceeded, "the time was up while the code ran"},
		"timeout, lost":          {messages.Result{Outcome: messages.OutcomeTimeout, State: messages.StateLost, Cells: ran, Reason: "it did not stop"}, is[*messages.TimeoutError], context.DeadlineExceeded, "the time was up while the code ran: it did not stop"},
		"cancelled, restored":    {messages.Result{Outcome: messages.OutcomeCancelled, State: messages.StateRestored, Cells: ran, Reason: "it was on disk"}, is[*messages.CancelledError], context.Canceled, "the call was cancelled while the code ran"},
		"cell timeout":           {messages.Result{Outcome: messages.OutcomeTimeout, Cells: ran, Exceeded: &messages.ResourceLimitExceeded{Limit: messages.LimitRuntime}}, is[*messages.TimeoutError], context.DeadlineExceeded, "the time was up while the code ran: ResourceLimitExceeded: runtime"},
		"cell timeout, lost":     {messages.Result{Outcome: messages.OutcomeTimeout, State: messages.StateLost, Cells: ran, Reason: "it did not stop", Exceeded: &messages.ResourceLimitExceeded{Limit: messages.LimitRuntime}}, is[*messages.TimeoutError], context.DeadlineExceeded, "the time was up while the code ran: ResourceLimitExceeded: runtime; it did not stop"},
		"timeout in the queue":   {messages.Result{Outcome: messages.OutcomeTimeout, Cells: waited}, is[*messages.TimeoutError], context.DeadlineExceeded, "the time was up: it was still waiting, and the code was not run"},
		"cancelled":              {messages.Result{Outcome: messages.OutcomeCancelled, Cells: ran}, is[*messages.CancelledError], context.Canceled, "the call was cancelled while the code ran"},
		"shut down":              {messages.Result{Outcome: messages.OutcomeCancelled, State: messages.StateKept, Cells: ran, Progress: messages.Progress{Reach: messages.ReachBegun, Begun: 1, Stop: messages.StopShutdown}}, is[*messages.CancelledError], context.Canceled, "the call was cancelled while the code ran: the host was shut down"},
		"cancelled in the queue": {messages.Result{Outcome: messages.OutcomeCancelled, Cells: waited}, is[*messages.CancelledError], context.Canceled, "the call was cancelled: it was still waiting, and the code was not run"},
		"lost":                   {messages.Result{Outcome: messages.OutcomeLost, Cells: ran, Reason: "it died"}, is[*messages.LostError], nil, "the kernel was lost while the code ran: it died"},
		"overloaded":             {messages.NotStarted(messages.Execute{}, "runner", messages.RefusedOverloaded, "no place"), is[*messages.NotStartedError], messages.ErrOverloaded, "the code was not run: no place"},
		"draining":               {messages.NotStarted(messages.Execute{}, "runner", messages.RefusedDraining, ""), is[*messages.NotStartedError], nil, "the code was not run"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := c.r.Err()
			if c.as == nil {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, c.text)
			require.True(t, c.as(err), "%T", err)
			if c.is != nil {
				require.ErrorIs(t, err, c.is)
			}
			require.Equal(t, errors.Is(c.is, messages.ErrOverloaded), errors.Is(err, messages.ErrOverloaded))
		})
	}
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// A result of code that never ran makes no claim about the session's variables.
func TestNotStarted(t *testing.T) {
	t.Parallel()
	e := messages.Execute{ID: "e-1", Key: messages.SessionKey{Session: "s", Cwd: "/w"}, Cells: []messages.Cell{{Code: "1", Title: "one"}}}
	r := messages.NotStarted(e, "runner", messages.RefusedOverloaded, "no place")
	require.False(t, r.Ran())
	require.Empty(t, r.State)
	require.Equal(t, []messages.CellResult{{Title: "one", Status: messages.CellPending, Outcome: messages.OutcomeNotStarted}}, r.Cells)
	require.Equal(t, []string{"e-1", "s", "/w", "runner"}, []string{r.Exec, r.Session, r.Cwd, r.Backend})
}
