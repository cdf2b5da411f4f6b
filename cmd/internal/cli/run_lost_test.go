package cli

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/messages"
)

// TestAServerThatDoesNotSay: each execution has an outcome, whatever becomes of its server. What
// may have run is lost, and what the server has refused was not started.
func TestAServerThatDoesNotSay(t *testing.T) {
	running := messages.Status{Position: messages.Position{Seq: 1}, Status: messages.CellRunning}
	hi := messages.Stream{Position: messages.Position{Seq: 2}, Name: messages.StdoutStream, Text: "hi\n"}
	gone := &client.Error{Status: http.StatusGone, Code: "lost", Message: "what became of it is not known", Hint: "look"}
	for name, tc := range map[string]struct {
		events  []messages.Event
		err     error
		left    bool // the caller has left
		outcome messages.Outcome
		refusal messages.Refusal
		reason  string
		output  string
	}{
		"it was killed":          {[]messages.Event{running, hi}, io.ErrUnexpectedEOF, false, messages.OutcomeLost, "", "coppice sessions logs k", "hi"},
		"another one runs":       {[]messages.Event{running, hi}, gone, false, messages.OutcomeLost, "", "what became of it is not known; look", "hi"},
		"it may have begun":      {nil, io.ErrUnexpectedEOF, false, messages.OutcomeLost, "", "what became of the code is not known", ""},
		"sent to the one before": {nil, gone, false, messages.OutcomeLost, "", "what became of it is not known", ""},
		"it was to stop":         {[]messages.Event{running}, io.ErrUnexpectedEOF, true, messages.OutcomeCancelled, "", "what became of the code is not known", ""},
		"no place":               {nil, &client.Error{Code: "overloaded", Message: "too many wait"}, false, messages.OutcomeNotStarted, messages.RefusedOverloaded, "too many wait", ""},
		"no entry":               {nil, &client.Error{Code: "unauthorized", Message: "the token is wrong"}, false, messages.OutcomeNotStarted, messages.RefusedRequest, "the token is wrong", ""},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tc.left {
				cancel()
			}
			end := concluded{reads: true, exec: messages.Execute{ID: "x", Key: messages.SessionKey{Session: "k"}, Cells: []messages.Cell{{Code: "a"}, {Code: "b"}}}}
			var final *messages.Final
			n := 0
			for e, err := range end.of(ctx, func(yield func(messages.Event, error) bool) {
				for _, e := range tc.events {
					if !yield(e, nil) {
						return
					}
				}
				yield(nil, tc.err)
			}) {
				require.NoError(t, err)
				n++
				if f, is := e.(messages.Final); is {
					final = &f
				}
			}
			require.NotNil(t, final)
			require.EqualValues(t, n, final.Seq, "events are counted without a gap")
			r := final.Result
			require.Equal(t, tc.outcome, r.Outcome)
			require.Equal(t, tc.refusal, r.Refusal)
			require.Contains(t, r.Reason, tc.reason)
			require.Contains(t, strings.ToLower(r.Text), tc.reason)
			require.Contains(t, r.Text, tc.output)
			require.NotContains(t, r.Text, "died")
			require.Equal(t, "k", r.Session)
			require.Equal(t, "x", r.Exec)
			require.Len(t, r.Cells, 2)
			require.Equal(t, tc.output, r.Cells[0].Output)
			if len(tc.events) > 0 {
				require.Equal(t, tc.outcome, r.Cells[0].Outcome)
			}
			require.Equal(t, messages.OutcomeNotStarted, r.Cells[1].Outcome)
			require.EqualError(t, end.err, r.Reason)
		})
	}
}

// TestAWrongRequestHasNoOutcome: it is the command line that is wrong.
func TestAWrongRequestHasNoOutcome(t *testing.T) {
	wrong := &client.Error{Code: "bad_request", Message: "no cells"}
	end := concluded{reads: true}
	for e, err := range end.of(t.Context(), func(yield func(messages.Event, error) bool) { yield(nil, wrong) }) {
		require.Nil(t, e)
		require.ErrorIs(t, err, wrong)
	}
	require.NoError(t, end.err)
}

// TestARunAtAServerThatForgot: the exit code, the object on standard output and the error agree.
func TestARunAtAServerThatForgot(t *testing.T) {
	answers := map[string]string{"POST /api/executions": `{"id":"x1"}`} // and 404 for its events
	for name, tc := range map[string]struct {
		args      []string
		out, told string
	}{
		"for people": {nil, "✗ the kernel was lost: the server was started again", ""},
		"quiet":      {[]string{"-q"}, "", "✗ the kernel was lost: the server was started again"},
		"as blocks":  {[]string{"--blocks"}, "the server was started again", ""},
		"as JSON":    {[]string{"--json"}, `{"outcome":"lost",`, "coppice: the server was started again while the code ran: what became of it is not known; look"},
		"as events":  {[]string{"--events"}, `{"seq":1,"cell":-1,"type":"final","outcome":"lost",`, "coppice: the server was started again"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, answers)
			code, out, told := p.run("", append([]string{"run", "--session", "a", "--cwd", "/w", "-c", "f()"}, tc.args...)...)
			require.Equal(t, 70, code, "%s%s", out, told)
			require.Contains(t, out, tc.out)
			require.Contains(t, told, tc.told)
			if tc.told == "" {
				require.Empty(t, strings.TrimSpace(told))
			}
		})
	}
}
