package result_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks/result"
)

var zero, one = 0, 1

// The cells of the results below.
func done(output string) messages.CellResult {
	return messages.CellResult{Status: messages.CellComplete, Outcome: messages.OutcomeOK, Output: output, ExitCode: &zero}
}

func raised(output string) messages.CellResult {
	return messages.CellResult{Status: messages.CellError, Outcome: messages.OutcomeError, Output: output, ExitCode: &one}
}

func ended(outcome messages.Outcome, output string) messages.CellResult {
	return messages.CellResult{Status: messages.CellError, Outcome: outcome, Output: output}
}

func pending() messages.CellResult {
	return messages.CellResult{Status: messages.CellPending, Outcome: messages.OutcomeNotStarted}
}

func titled(title string, c messages.CellResult) messages.CellResult {
	c.Title = title
	return c
}

func call(outcome messages.Outcome, cells ...messages.CellResult) messages.Result {
	return messages.Result{Outcome: outcome, State: messages.StateKept, Cells: cells}
}

// limited is r when the call's own timeout has passed, if it is that which ended it.
func limited(r messages.Result, timeout time.Duration) messages.Result {
	if r.Outcome == messages.OutcomeTimeout && r.Exceeded == nil {
		r.Progress.Stop, r.Progress.Limit = messages.StopTimeout, timeout
	}
	return r
}

// with returns r after change.
func with(r messages.Result, change func(*messages.Result)) messages.Result {
	change(&r)
	return r
}

func state(s messages.State, reason string) func(*messages.Result) {
	return func(r *messages.Result) { r.State, r.Reason = s, reason }
}

func cut(t messages.Truncation, uri string) func(*messages.Result) {
	return func(r *messages.Result) {
		r.Truncation = &t
		if uri != "" {
			r.Artifact = &uri
		}
	}
}

// texts are results by name; testdata/text.golden.txt holds what each reads as.
var texts = map[string]messages.Result{
	"ok, no cells":                      call(messages.OutcomeOK),
	"ok, one cell":                      call(messages.OutcomeOK, done("\n\n   a  b\n0  1  2\n\n")),
	"ok, one cell with a title":         call(messages.OutcomeOK, titled("not shown", done("x\n"))),
	"ok, nothing":                       call(messages.OutcomeOK, done("")),
	"ok, blanks":                        call(messages.OutcomeOK, done(" \n\t\n")),
	"ok, status events only":            call(messages.OutcomeOK, messages.CellResult{Status: messages.CellComplete, Outcome: messages.OutcomeOK, Events: []messages.RawJSON{messages.RawJSON(`{"op":"x"}`)}}),
	"ok, an image":                      with(call(messages.OutcomeOK, done("")), func(r *messages.Result) { r.Images = []messages.Image{{}} }),
	"ok, JSON":                          with(call(messages.OutcomeOK, done("")), func(r *messages.Result) { r.JSON = []messages.RawJSON{messages.RawJSON(`1`)} }),
	"ok, several":                       call(messages.OutcomeOK, titled("load\n data", done("1\n")), done(""), titled("plot", done("\n2\n"))),
	"ok, fresh, first call":             with(call(messages.OutcomeOK, done("1\n")), state(messages.StateFresh, "")),
	"ok, fresh, had state":              with(call(messages.OutcomeOK, done("1\n")), state(messages.StateFresh, "the idle session was evicted.")),
	"ok, lost by exit()":                with(call(messages.OutcomeOK, done("1\n")), state(messages.StateLost, "the code ended its own interpreter (exit)")),
	"ok, lost, no reason":               with(call(messages.OutcomeOK, done("1\n")), state(messages.StateLost, "")),
	"error, one cell":                   call(messages.OutcomeError, raised("ValueError: x\n")),
	"error, one cell, nothing":          call(messages.OutcomeError, raised("")),
	"error, first of several":           call(messages.OutcomeError, titled("load", raised("ValueError: x\n")), pending()),
	"error, second of several":          call(messages.OutcomeError, done("1\n"), titled("plot", raised("ValueError: x\n")), pending()),
	"error, second, nothing":            call(messages.OutcomeError, done(""), raised("")),
	"error, second, state lost":         with(call(messages.OutcomeError, done(""), raised("x")), state(messages.StateLost, "the kernel process was killed by signal 9")),
	"error, images, nothing":            with(call(messages.OutcomeError, raised("")), func(r *messages.Result) { r.Images = []messages.Image{{}} }),
	"error, exit code 3":                call(messages.OutcomeError, messages.CellResult{Status: messages.CellError, Outcome: messages.OutcomeError, ExitCode: func() *int { n := 3; return &n }()}),
	"stdin":                             with(call(messages.OutcomeError, raised("name? \n")), func(r *messages.Result) { r.StdinRequested = true }),
	"timeout, one cell":                 call(messages.OutcomeTimeout, ended(messages.OutcomeTimeout, "so far\n")),
	"timeout, one cell, nothing":        call(messages.OutcomeTimeout, ended(messages.OutcomeTimeout, "")),
	"timeout, second of three":          call(messages.OutcomeTimeout, done("1\n"), ended(messages.OutcomeTimeout, ""), pending()),
	"timeout, waited only":              call(messages.OutcomeTimeout, pending(), pending()),
	"timeout, kernel killed":            with(call(messages.OutcomeTimeout, done(""), ended(messages.OutcomeTimeout, "")), state(messages.StateLost, "it did not stop when it was interrupted")),
	"cancelled, one cell":               call(messages.OutcomeCancelled, ended(messages.OutcomeCancelled, "so far")),
	"cancelled, one cell, nothing":      call(messages.OutcomeCancelled, ended(messages.OutcomeCancelled, "")),
	"cancelled, first of two":           call(messages.OutcomeCancelled, ended(messages.OutcomeCancelled, ""), pending()),
	"cancelled, waited only":            call(messages.OutcomeCancelled, pending()),
	"lost, one cell":                    with(call(messages.OutcomeLost, ended(messages.OutcomeLost, "so far\n")), state(messages.StateLost, "the kernel process was killed by signal 9")),
	"lost, second of two, why unknown":  with(call(messages.OutcomeLost, done("1"), ended(messages.OutcomeLost, "")), state(messages.StateLost, "")),
	"lost, no cell ran":                 with(call(messages.OutcomeLost, pending()), state(messages.StateLost, "the kernel's actor failed")),
	"not started":                       with(call(messages.OutcomeNotStarted, pending()), state(messages.StateFresh, "all 4 sessions are busy.")),
	"not started, no reason":            call(messages.OutcomeNotStarted, pending(), pending()),
	"not started, state lost":           with(call(messages.OutcomeNotStarted, pending()), state(messages.StateLost, "the start failed")),
	"cut, tail, artifact":               with(call(messages.OutcomeOK, done("x\n")), cut(messages.Truncation{Direction: "tail", TruncatedBy: "bytes", TotalLines: 900, OutputLines: 100, MaxBytes: 51200, ShownStart: 801, ShownEnd: 900}, "artifact://3")),
	"cut, tail, by lines, no artifact":  with(call(messages.OutcomeOK, done("x\n")), cut(messages.Truncation{Direction: "tail", TruncatedBy: "lines", TotalLines: 9000, OutputLines: 3000, MaxBytes: 51200, ShownStart: 6001, ShownEnd: 9000}, "")),
	"cut, middle":                       with(call(messages.OutcomeOK, done("x\n")), cut(messages.Truncation{Direction: "middle", TruncatedBy: "bytes", TotalLines: 900, OutputLines: 100, MaxBytes: 51200, ShownStart: 861, ShownEnd: 900}, "artifact://3")),
	"cut, middle, head is a piece":      with(call(messages.OutcomeOK, done("x\n")), cut(messages.Truncation{Direction: "middle", TruncatedBy: "bytes", TotalLines: 1, OutputLines: 1, OutputBytes: 2048, ShownStart: 1, ShownEnd: 1}, "artifact://3")),
	"cut, several cells":                with(call(messages.OutcomeOK, done("x\n"), done("y")), cut(messages.Truncation{Direction: "middle", TruncatedBy: "bytes", TotalLines: 900, OutputLines: 100, MaxBytes: 51200}, "artifact://3")),
	"not cut, but folded, artifact":     with(call(messages.OutcomeOK, done("100 %\n")), func(r *messages.Result) { uri := "artifact://4"; r.Artifact = &uri }),
	"error, cut, fresh: all that it is": with(with(call(messages.OutcomeError, done("1"), raised("x\n")), state(messages.StateFresh, "the session was reset")), cut(messages.Truncation{Direction: "tail", TruncatedBy: "bytes", TotalLines: 9, OutputLines: 2, MaxBytes: 512, ShownStart: 8, ShownEnd: 9}, "artifact://0")),
}

func TestBuildText(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		fmt.Fprintf(&b, "=== %s\n%s\n", name, result.BuildText(limited(texts[name], 30*time.Second)))
	}
	golden(t, "testdata/text.golden.txt", []byte(b.String()))
}

// TestWording pins the sentences that other programs look for.
func TestWording(t *testing.T) {
	t.Parallel()
	slow := call(messages.OutcomeTimeout, ended(messages.OutcomeTimeout, ""))
	for timeout, want := range map[time.Duration]string{
		time.Millisecond: "Command timed out after 0.01 seconds", 500 * time.Millisecond: "Command timed out after 0.5 seconds",
		time.Second: "Command timed out after 1 seconds", 1500 * time.Millisecond: "Command timed out after 1.5 seconds",
		30 * time.Second: "Command timed out after 30 seconds", 10 * time.Minute: "Command timed out after 600 seconds",
		0: "Command timed out",
	} {
		require.Equal(t, want, result.BuildText(limited(slow, timeout)))
	}
	require.Equal(t, "[1/2]\n1\n\n[2/2] (no output)\n\nCell 2 failed (exit code 1). Earlier cells succeeded—their state persists. Fix only cell 2.",
		result.BuildText(call(messages.OutcomeError, done("1"), raised(""))))
	require.Equal(t, "x\n\nCommand exited with code 1", result.BuildText(call(messages.OutcomeError, raised("x"))))
	require.Equal(t, "Command aborted", result.BuildText(call(messages.OutcomeCancelled, ended(messages.OutcomeCancelled, ""))))
}

// TestOnlySuccessReadsOK: no text of a call that did not succeed says (ok) of
// the cell at fault, or that there was merely no output.
func TestOnlySuccessReadsOK(t *testing.T) {
	t.Parallel()
	for name, r := range texts {
		text := result.BuildText(limited(r, time.Second))
		require.NotEmpty(t, text, name)
		require.Equal(t, strings.TrimSpace(text), strings.TrimLeft(text, " "), name)
		if r.Outcome == messages.OutcomeOK {
			continue
		}
		for i, c := range r.Cells {
			if c.Outcome != messages.OutcomeOK {
				require.NotContains(t, text, fmt.Sprintf("[%d/%d] (ok)", i+1, len(r.Cells)), name)
			}
		}
		require.False(t, strings.HasPrefix(text, "(no"), "%s: %s", name, text)
	}
}
