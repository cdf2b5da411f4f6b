package result_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks/artifact"
	"github.com/coppice-run/coppice/sinks/budget"
	"github.com/coppice-run/coppice/sinks/result"
)

// forms names every form that a result's text has, with the whole text. Programs
// and prompts rely on these words: a change of one is a change of a contract.
var forms = []struct {
	form string
	r    messages.Result
	want string
}{
	{"one cell: its output, without the empty lines around it", call(messages.OutcomeOK, done("\n\n  a\nb \n\n")), "  a\nb"},
	{"one cell: its title is not shown", call(messages.OutcomeOK, titled("load", done("1\n"))), "1"},
	{"a notice, but not that of a busy machine", with(call(messages.OutcomeOK, done("1")), func(r *messages.Result) {
		r.Notices = []string{messages.BusyNotice + "the code took 5 s", "its conversation was not saved"}
	}), "1\n\n[its conversation was not saved]"},
	{"success without output", call(messages.OutcomeOK, done("")), "(no output)"},
	{"success with status events alone", call(messages.OutcomeOK, messages.CellResult{Status: messages.CellComplete, Outcome: messages.OutcomeOK, Events: []messages.RawJSON{messages.RawJSON(`{"op":"ls"}`)}}), "(no output)"},
	{"success with an image alone", with(call(messages.OutcomeOK, done("")), func(r *messages.Result) { r.Images = []messages.Image{{}} }), "(no text output)"},
	{"success with JSON alone", with(call(messages.OutcomeOK, done("")), func(r *messages.Result) { r.JSON = []messages.RawJSON{messages.RawJSON(`{}`)} }), "(no text output)"},
	{"several cells: [i/n] title, output, a blank line between", call(messages.OutcomeOK, titled("load", done("1")), done("2")), "[1/2] load\n1\n\n[2/2]\n2"},
	{"several cells: (ok) for one that completed without output", call(messages.OutcomeOK, titled("load", done("")), done("2")), "[1/2] load (ok)\n\n[2/2]\n2"},
	{"one cell failed: the exit code after the output", call(messages.OutcomeError, raised("E: x")), "E: x\n\nCommand exited with code 1"},
	{"one cell failed without output: the exit code alone", call(messages.OutcomeError, raised("")), "Command exited with code 1"},
	{"a cell of several failed: it is named, earlier state is kept", call(messages.OutcomeError, done("1"), titled("plot", raised("E: x")), pending()), "[1/3]\n1\n\n[2/3] plot\nE: x\n\nCell 2 failed (exit code 1). Earlier cells succeeded—their state persists. Fix only cell 2."},
	{"the first of several failed: there is no earlier state", call(messages.OutcomeError, raised("E: x"), pending()), "[1/2]\nE: x\n\nCell 1 failed (exit code 1). Fix only cell 1."},
	{"a cell of several failed without output: never (ok)", call(messages.OutcomeError, done(""), raised("")), "[1/2] (ok)\n\n[2/2] (no output)\n\nCell 2 failed (exit code 1). Earlier cells succeeded—their state persists. Fix only cell 2."},
	{"one cell timed out", call(messages.OutcomeTimeout, ended(messages.OutcomeTimeout, "so far")), "so far\n\nCommand timed out after 30 seconds"},
	{"one cell timed out without output", call(messages.OutcomeTimeout, ended(messages.OutcomeTimeout, "")), "Command timed out after 30 seconds"},
	{"the run time of the session was up before the call's", with(call(messages.OutcomeTimeout, ended(messages.OutcomeTimeout, "so far")), func(r *messages.Result) {
		r.Exceeded = &messages.ResourceLimitExceeded{Limit: messages.LimitRuntime}
	}), "so far\n\nCommand timed out\n\n[ResourceLimitExceeded: runtime]"},
	{"a cell of several timed out", call(messages.OutcomeTimeout, done("1"), ended(messages.OutcomeTimeout, ""), pending()), "[1/3]\n1\n\n[2/3] (no output)\n\nCell 2 aborted: Command timed out after 30 seconds. Earlier cells succeeded—their state persists.\n\n[Cell 3 did not run.]"},
	{"the time was up before a cell ran", call(messages.OutcomeTimeout, pending(), pending()), "Command timed out after 30 seconds: it was still waiting, and the code was not run."},
	{"one cell cancelled", call(messages.OutcomeCancelled, ended(messages.OutcomeCancelled, "so far")), "so far\n\nCommand aborted"},
	{"one cell cancelled without output", call(messages.OutcomeCancelled, ended(messages.OutcomeCancelled, "")), "Command aborted"},
	{"a cell of several cancelled", call(messages.OutcomeCancelled, done(""), ended(messages.OutcomeCancelled, "x")), "[1/2] (ok)\n\n[2/2]\nx\n\nCell 2 aborted: Command aborted. Earlier cells succeeded—their state persists."},
	{"input was asked for and there was none", with(call(messages.OutcomeError, raised("name? ")), func(r *messages.Result) { r.StdinRequested = true }), "name?\n\nKernel requested stdin; interactive input is not supported.\n\nCommand exited with code 1"},
	{"the kernel died under a cell", with(call(messages.OutcomeLost, done("1"), ended(messages.OutcomeLost, "")), state(messages.StateLost, "the kernel process was killed by signal 9")), "[1/2]\n1\n\n[2/2] (no output)\n\nThe kernel died while cell 2 ran: the kernel process was killed by signal 9. All variables are gone. The code was not run again: it may have had effects, check for them before you repeat it."},
	{"a kernel that did not stop was killed", with(call(messages.OutcomeTimeout, ended(messages.OutcomeTimeout, "")), state(messages.StateLost, "it did not stop when it was interrupted")), "Command timed out after 30 seconds\n\n[All variables are gone: it did not stop when it was interrupted.]"},
	{"a new kernel where there had been one", with(call(messages.OutcomeOK, done("1")), state(messages.StateFresh, "the idle session was evicted")), "1\n\n[This call got a new kernel: the idle session was evicted. The variables of earlier calls are gone.]"},
	{"the code never ran", with(call(messages.OutcomeNotStarted, pending()), state(messages.StateFresh, "all 4 sessions are busy")), "The code was not run: all 4 sessions are busy."},
	{"cut at both ends: two ranges, the limit, the artifact", with(call(messages.OutcomeOK, done("x")), cut(messages.Truncation{Direction: "middle", TruncatedBy: "bytes", TotalLines: 900, OutputLines: 100, MaxBytes: 51200, ShownStart: 861, ShownEnd: 900}, "artifact://3")), "x\n\n[Showing lines 1-60 and 861-900 of 900 (50.0KB limit). Read artifact://3 for full output]"},
	{"cut by bytes, tail alone", with(call(messages.OutcomeOK, done("x")), cut(messages.Truncation{Direction: "tail", TruncatedBy: "bytes", TotalLines: 900, OutputLines: 100, MaxBytes: 51200, ShownStart: 801, ShownEnd: 900}, "artifact://3")), "x\n\n[Showing lines 801-900 of 900 (50.0KB limit). Read artifact://3 for full output]"},
	{"cut by lines: no limit in bytes is named", with(call(messages.OutcomeOK, done("x")), cut(messages.Truncation{Direction: "tail", TruncatedBy: "lines", TotalLines: 9000, OutputLines: 3000, ShownStart: 6001, ShownEnd: 9000}, "artifact://0")), "x\n\n[Showing lines 6001-9000 of 9000. Read artifact://0 for full output]"},
	{"cut, without an artifact", with(call(messages.OutcomeOK, done("x")), cut(messages.Truncation{Direction: "tail", TruncatedBy: "bytes", TotalLines: 9, OutputLines: 2, MaxBytes: 512, ShownStart: 8, ShownEnd: 9}, "")), "x\n\n[Showing lines 8-9 of 9 (512B limit)]"},
	{"cut, several cells: how many lines, no range", with(call(messages.OutcomeOK, done("x"), done("y")), cut(messages.Truncation{Direction: "middle", TruncatedBy: "bytes", TotalLines: 900, OutputLines: 100, MaxBytes: 2411725}, "artifact://3")), "[1/2]\nx\n\n[2/2]\ny\n\n[Showing 100 of 900 lines (2.3MB limit). Read artifact://3 for full output]"},
	{"cut without a limit: what is shown counts", with(call(messages.OutcomeOK, done("x")), cut(messages.Truncation{Direction: "tail", TruncatedBy: "bytes", TotalLines: 9, OutputLines: 2, OutputBytes: 3, ShownStart: 8, ShownEnd: 9}, "")), "x\n\n[Showing lines 8-9 of 9 (3B limit)]"},
}

func TestForms(t *testing.T) {
	t.Parallel()
	for _, f := range forms {
		t.Run(f.form, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, f.want, result.BuildText(limited(f.r, 30*time.Second)))
		})
	}
}

// TestFormsOfLongOutput holds the texts from the print to the notice: what a
// fold elides, where it says so, and how it is read again.
func TestFormsOfLongOutput(t *testing.T) {
	t.Parallel()
	lines := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintln(&b, i+1)
		}
		return b.String()
	}
	for name, tc := range map[string]struct {
		o          budget.Options
		in         string
		text, back string
	}{
		"middle, by lines": {budget.Options{Bytes: 100, Lines: 5}, lines(9), "1\n2\n[… 4 lines, 8B elided …]\n7\n8\n9\n\n[Showing lines 1-2 and 7-9 of 9. Read artifact://0 for full output]", lines(9)},
		"middle, by bytes": {budget.Options{Bytes: 20}, lines(20), "1\n2\n3\n4\n[… 12 lines, 31B elided …]\n17\n18\n19\n20\n\n[Showing lines 1-4 and 17-20 of 20 (20B limit). Read artifact://0 for full output]", lines(20)},
		"tail":             {budget.Options{Lines: 2, TailOnly: true}, lines(9), "8\n9\n\n[Showing lines 8-9 of 9. Read artifact://0 for full output]", lines(9)},
		"one line":         {budget.Options{Bytes: 10}, "abcdefghijklmnop", "abcd\n[… 6B elided …]\nklmnop\n\n[Showing 10B of 16B, in 1 line (10B limit). Read artifact://0 for full output]", "abcdefghijklmnop"},
		"columns":          {budget.Options{Columns: 4}, "12345678\n1\n", "1234…\n1\n[Some lines truncated to 4 bytes: 1]\n\n[Read artifact://0 for full output]", "12345678\n1\n"},
		"overwritten":      {budget.Options{Bytes: 10}, "1%\r2%\r3%\rdone\n", "done\n\n[Read artifact://0 for full output]", "1%\r2%\r3%\rdone\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := artifact.New(artifact.Options{Dir: t.TempDir()})
			f := result.New(result.Options{Budget: tc.o, Store: store}, 1)
			f.Add(messages.Stream{Name: messages.StdoutStream, Text: tc.in})
			out := f.Output()
			require.NoError(t, f.Close())
			r := call(messages.OutcomeOK, done(out.Cells[0].Text))
			r.Truncation, r.Artifact = out.Truncation, &out.Artifact
			require.Equal(t, tc.text, result.BuildText(r))
			file, err := store.Open(out.Artifact)
			require.NoError(t, err)
			defer func() { require.NoError(t, file.Close()) }()
			back, err := io.ReadAll(file)
			require.NoError(t, err)
			require.Equal(t, tc.back, string(back))
		})
	}
}

// TestOKIsSaidOfSuccessAlone draws results with any mixture of cells.
func TestOKIsSaidOfSuccessAlone(t *testing.T) {
	t.Parallel()
	outcomes := []messages.Outcome{messages.OutcomeOK, messages.OutcomeError, messages.OutcomeTimeout, messages.OutcomeCancelled, messages.OutcomeLost, messages.OutcomeNotStarted}
	statuses := []messages.CellStatus{messages.CellPending, messages.CellRunning, messages.CellComplete, messages.CellError}
	rapid.Check(t, func(t *rapid.T) {
		r := messages.Result{Outcome: rapid.SampledFrom(outcomes).Draw(t, "outcome"), State: messages.StateKept}
		want := 0
		for range rapid.IntRange(2, 4).Draw(t, "cells") {
			c := messages.CellResult{
				Status: rapid.SampledFrom(statuses).Draw(t, "status"), Outcome: rapid.SampledFrom(outcomes).Draw(t, "cell's outcome"),
				Output: rapid.SampledFrom([]string{"", " \n", "x\n"}).Draw(t, "output"),
			}
			if c.Status == messages.CellComplete && c.Outcome == messages.OutcomeOK && c.Output != "x\n" {
				want++
			}
			r.Cells = append(r.Cells, c)
		}
		text := result.BuildText(limited(r, time.Second))
		require.Equal(t, want, strings.Count(text, "(ok)"), text)
		if r.Outcome != messages.OutcomeOK {
			require.NotEmpty(t, text)
		}
	})
}
