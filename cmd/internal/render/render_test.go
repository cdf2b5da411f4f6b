package render_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/messages"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares text with testdata/<name>.golden. Escapes are written as ␛.
func golden(t *testing.T, name, got string) {
	t.Helper()
	got = strings.ReplaceAll(got, "\x1b", "␛")
	path := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o750))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// styles are those that golden files exist for.
var styles = map[string]render.Style{
	"plain":  {},
	"colour": {Colour: true, Terminal: true, Width: 80},
	"narrow": {Terminal: true, Width: 40},
}

func raw(s string) messages.RawJSON { return messages.RawJSON(s) }

func text(s string) messages.RawJSON {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return b
}

// png is a picture of 2 by 1 pixels.
const png = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAABCAIAAAB7QOjdAAAAD0lEQVR4nGP8z8AARAwMAAkGAQHcR1EAAAAASUVORK5CYII="

// calls are stories of one call each.
var calls = map[string]struct {
	cells  []messages.Cell
	events []messages.Event
	expand bool
}{
	"ok": {
		cells: []messages.Cell{{Title: "load", Code: "df = load()"}, {Code: "df"}},
		events: []messages.Event{
			running(0), out(0, "reading "), out(0, "3 rows\n"),
			messages.Status{Position: at(0), Data: raw(`{"op":"read","path":"a.csv","chars":120}`)},
			complete(0),
			running(1),
			messages.ExecuteResult{Position: at(1), Data: messages.Bundle{
				"text/plain": text("   a  b\n0  1  2"), "text/html": text("<table>"), "application/json": raw(`{"rows":[1,2,3,4,5,6,7],"name":"df","deep":{"er":{"est":1}}}`),
			}},
			complete(1),
			messages.Final{Result: messages.Result{Outcome: messages.OutcomeOK, State: messages.StateFresh, Cells: cells("complete", "complete")}},
		},
	},
	"error": {
		cells: []messages.Cell{{Title: "compute"}, {Title: "never"}},
		events: []messages.Event{
			running(0), out(0, "no newline"),
			messages.Stream{Position: at(0), Name: messages.StderrStream, Text: "warning\n"},
			messages.Error{Position: at(0), ErrorDetails: messages.ErrorDetails{
				Name: "ZeroDivisionError", Message: "division by zero",
				Traceback: []string{"\x1b[31m---------------\x1b[39m", "\x1b[31mZeroDivisionError\x1b[39m  Traceback (most recent call last)", "Cell \x1b[92mIn[1]\x1b[39m, line 1\n----> 1 1/0\n", "\x1b[31mZeroDivisionError\x1b[39m: division by zero"},
			}},
			failed(0),
			messages.Final{Result: messages.Result{Outcome: messages.OutcomeError, State: messages.StateKept, Cells: cells("error", "pending")}},
		},
	},
	"restored": {
		cells: []messages.Cell{{Code: "x + 1"}},
		events: []messages.Event{
			running(0), complete(0),
			messages.Final{Result: messages.Result{Outcome: messages.OutcomeOK, State: messages.StateRestored, Cells: cells("complete"), Restored: &messages.Restored{Memory: messages.Memory{Kept: []string{"x"}}}}},
		},
	},
	"restored_in_part": {
		cells: []messages.Cell{{Code: "x + 1"}},
		events: []messages.Event{
			running(0), complete(0),
			messages.Final{Result: messages.Result{Outcome: messages.OutcomeOK, State: messages.StateRestored, Cells: cells("complete"), Restored: &messages.Restored{Memory: messages.Memory{
				Kept: []string{"x"}, Lost: []messages.LostName{{Name: "s", Type: "socket.socket", Reason: "a connection ends with its process"}},
			}}}},
		},
	},
	"lost": {
		cells: []messages.Cell{{Title: "dies"}},
		events: []messages.Event{
			running(0), out(0, "before"), failed(0),
			messages.Final{Result: messages.Result{Outcome: messages.OutcomeLost, State: messages.StateLost, Reason: "the kernel process was killed by signal 9", Cells: cells("error")}},
		},
	},
	"timeout": {
		cells: []messages.Cell{{Code: "loop()"}},
		events: []messages.Event{
			running(0),
			messages.Error{Position: at(0), ErrorDetails: messages.ErrorDetails{Name: "KeyboardInterrupt", Traceback: []string{"---", "a", "b"}}},
			failed(0),
			messages.Final{Result: messages.Result{Outcome: messages.OutcomeTimeout, State: messages.StateFresh, Cells: cells("error")}},
		},
	},
	"cancelled": {
		cells: []messages.Cell{{Code: "loop()"}},
		events: []messages.Event{
			running(0), failed(0),
			messages.Final{Result: messages.Result{Outcome: messages.OutcomeCancelled, State: messages.StateLost, Reason: "it did not stop", Cells: cells("error")}},
		},
	},
	"refused": {
		cells: []messages.Cell{{Code: "1"}},
		events: []messages.Event{
			messages.Final{Result: messages.Result{Outcome: messages.OutcomeNotStarted, State: messages.StateFresh, Reason: "all 4 sessions are busy", Cells: cells("pending")}},
		},
	},
	"hostile": {
		cells: []messages.Cell{{Title: "x\x1b]0;owned\a\ny"}},
		events: []messages.Event{
			running(0), out(0, "10%\r20%\r\x1b[2J\x1b]52;c;aGk=\a30%\n\x1b[32mgreen"),
			messages.Notice{Position: at(0), Text: "told\x1b[2J"},
			messages.Display{Position: at(0), Data: messages.Bundle{"image/png": text(png), "text/plain": text("<Figure size 2x1>")}},
			messages.Display{Position: at(0), Data: messages.Bundle{"application/x-strange": raw(`"abc"`)}},
			messages.InputRequest{Position: at(0), Prompt: "name? "},
			complete(0),
			messages.Final{Result: messages.Result{Outcome: messages.OutcomeOK, State: messages.StateKept, StdinRequested: true, Cells: cells("complete")}},
		},
	},
	"expanded": {
		expand: true,
		cells:  []messages.Cell{{Title: "code", Code: "a = 1\nb = 2\n"}},
		events: []messages.Event{
			running(0),
			messages.Display{Position: at(0), Data: messages.Bundle{"application/json": raw(`[[[["deep"]]]]`)}},
			messages.Display{Position: at(0), Data: messages.Bundle{"application/json": raw(`1.50`)}},
			complete(0),
			messages.Final{Result: messages.Result{Outcome: messages.OutcomeOK, State: messages.StateKept, Cells: cells("complete")}},
		},
	},
}

func at(cell int) messages.Position { return messages.Position{Cell: cell} }

func running(cell int) messages.Event {
	return messages.Status{Position: at(cell), Status: messages.CellRunning}
}

func complete(cell int) messages.Event {
	return messages.Status{Position: at(cell), Status: messages.CellComplete}
}

func failed(cell int) messages.Event {
	return messages.Status{Position: at(cell), Status: messages.CellError}
}

func out(cell int, s string) messages.Event {
	return messages.Stream{Position: at(cell), Name: messages.StdoutStream, Text: s}
}

func cells(status ...messages.CellStatus) []messages.CellResult {
	var list []messages.CellResult
	for i, s := range status {
		list = append(list, messages.CellResult{Index: i, Status: s})
	}
	return list
}

// ticking is a clock that goes 12 ms further each time it is read.
func ticking() func() time.Time {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return func() time.Time {
		now = now.Add(12 * time.Millisecond)
		return now
	}
}

// TestRun draws each story in each style.
func TestRun(t *testing.T) {
	t.Parallel()
	for name, call := range calls {
		for as, style := range styles {
			t.Run(name+"/"+as, func(t *testing.T) {
				t.Parallel()
				run := render.NewRun(render.RunOptions{Style: style, Cells: call.cells, Expand: call.expand, Timeout: 2 * time.Second, Now: ticking()})
				var b strings.Builder
				for _, e := range call.events {
					b.WriteString(run.Event(e))
				}
				got := b.String()
				golden(t, "run_"+name+"_"+as, got)
				require.True(t, strings.HasSuffix(got, "\n"), "the drawing ends its last line")
				if !style.Colour {
					require.NotContains(t, got, "\x1b")
				}
			})
		}
	}
}

// TestAReasonIsOfItsOwn: why a session had to begin anew is not why its call was stopped.
func TestAReasonIsOfItsOwn(t *testing.T) {
	t.Parallel()
	r := messages.Result{Outcome: messages.OutcomeTimeout, State: messages.StateFresh, Cells: cells("timeout"), Reason: "the process exited with code 4"}
	ending := render.Ending(render.Style{}, r, 2*time.Second)
	require.Equal(t, []string{"✗ timed out after 2 s", "! new kernel: the process exited with code 4"}, ending)
	r.Outcome, r.State, r.Reason = messages.OutcomeCancelled, messages.StateLost, "it did not stop"
	require.Contains(t, render.Ending(render.Style{}, r, 0)[0], "✗ cancelled: it did not stop")
	r.State, r.Reason, r.Progress = messages.StateFresh, "the session was reset", messages.Progress{Reach: messages.ReachBegun, Begun: 1, Stop: messages.StopShutdown}
	require.Contains(t, render.Ending(render.Style{}, r, 0)[0], "✗ cancelled: the host was shut down")
}

// TestALimitIsNamed: what the code shows is a MemoryError alone, or that it was
// interrupted.
func TestALimitIsNamed(t *testing.T) {
	t.Parallel()
	r := messages.Result{Outcome: messages.OutcomeError, State: messages.StateKept, Cells: cells("complete", "error")}
	require.Empty(t, render.Ending(render.Style{}, r, 0))
	late := messages.Result{Outcome: messages.OutcomeTimeout, State: messages.StateKept, Cells: cells("timeout"), Exceeded: &messages.ResourceLimitExceeded{Limit: messages.LimitRuntime}}
	require.Equal(t, []string{"✗ timed out after 2 s: ResourceLimitExceeded: runtime"}, render.Ending(render.Style{}, late, 2*time.Second))
	late.State, late.Reason = messages.StateLost, "it did not stop when it was interrupted"
	require.Equal(t, "✗ timed out after 2 s: ResourceLimitExceeded: runtime; it did not stop when it was interrupted", render.Ending(render.Style{}, late, 2*time.Second)[0])
	well := messages.Result{Outcome: messages.OutcomeOK, State: messages.StateKept, Cells: cells("complete"), Exceeded: &messages.ResourceLimitExceeded{Limit: messages.LimitDisk}}
	require.Equal(t, []string{"! ResourceLimitExceeded: disk"}, render.Ending(render.Style{}, well, 0), "it has stopped nothing")
	r.Exceeded = &messages.ResourceLimitExceeded{Limit: messages.LimitMemory}
	require.Equal(t, []string{"✗ ResourceLimitExceeded: memory"}, render.Ending(render.Style{}, r, 0))
	r.Cells[1].Error = &messages.ErrorDetails{Name: "ResourceLimitExceeded", Message: "memory: the session may use 256 MiB"}
	require.Equal(t, []string{"✗ ResourceLimitExceeded: memory: the session may use 256 MiB"}, render.Ending(render.Style{}, r, 0))
}

// TestRunStreams shows that output is not held back: a line that has ended is
// written at once, and on a terminal one that has not.
func TestRunStreams(t *testing.T) {
	t.Parallel()
	plain := render.NewRun(render.RunOptions{Cells: make([]messages.Cell, 1)})
	plain.Event(running(0))
	require.Equal(t, "a\n", plain.Event(out(0, "a\nb")))
	terminal := render.NewRun(render.RunOptions{Style: render.Style{Terminal: true}, Cells: make([]messages.Cell, 1)})
	terminal.Event(running(0))
	require.Equal(t, "a\nb", terminal.Event(out(0, "a\nb")))
}

// TestRunOutput: what code prints reaches the terminal without what could change it, and
// each of our lines begins one.
func TestRunOutput(t *testing.T) {
	t.Parallel()
	terminal := render.Style{Terminal: true}
	colour := render.Style{Terminal: true, Colour: true}
	plain := func(s string) messages.Event {
		return messages.Display{Data: messages.Bundle{messages.MIMEPlain: text(s)}}
	}
	warn := messages.Stream{Name: messages.StderrStream, Text: "warning\n"}
	trace := messages.Error{ErrorDetails: messages.ErrorDetails{Traceback: []string{"\x1b[31mE\x1b[0m", "x"}}}
	for name, tc := range map[string]struct {
		o      render.RunOptions
		events []messages.Event
		want   string
	}{
		"text":                   {render.RunOptions{Style: terminal}, []messages.Event{out(0, "a\nb"), out(0, "c\n")}, "a\nbc\n"},
		"the last line is ended": {render.RunOptions{Style: terminal}, []messages.Event{out(0, "a")}, "a\n"},
		"both streams":           {render.RunOptions{Style: terminal}, []messages.Event{out(0, "a\n"), warn, out(0, "b\n")}, "a\nwarning\nb\n"},
		"displays on their own":  {render.RunOptions{Style: terminal}, []messages.Event{out(0, "a"), plain("shown"), messages.ExecuteResult{Data: messages.Bundle{messages.MIMEPlain: text("2")}}}, "a\nshown\n2\n"},
		"an error":               {render.RunOptions{Style: terminal}, []messages.Event{out(0, "a"), trace}, "a\nE\nx\n"},
		"an error, colour":       {render.RunOptions{Style: colour}, []messages.Event{trace}, "\x1b[31mE\x1b[0m\nx\n"},
		"a notice":               {render.RunOptions{Style: terminal}, []messages.Event{messages.Notice{Text: "no\x07tice"}}, "! notice\n"},
		"no colour":              {render.RunOptions{Style: terminal}, []messages.Event{out(0, "\x1b[1mbold\x1b[0m\x1b[2J\x1b]0;t\x07\n")}, "bold\n"},
		"colour":                 {render.RunOptions{Style: colour}, []messages.Event{out(0, "\x1b[1mbold\x1b[0m\x1b[2J\x1b]0;t\x07\n")}, "\x1b[1mbold\x1b[0m\n"},
		"colour left on":         {render.RunOptions{Style: colour}, []messages.Event{out(0, "\x1b[1mbold\n")}, "\x1b[1mbold\n\x1b[0m"},
		"colour ended below":     {render.RunOptions{Style: colour}, []messages.Event{out(0, "\x1b[1mbold\n\x1b[0m"), out(0, "plain\n")}, "\x1b[1mbold\n\x1b[0mplain\n"},
		"a sequence that is cut": {render.RunOptions{Style: terminal}, []messages.Event{out(0, "\x1b]0;ti"), out(0, "tle\x07x\n")}, "x\n"},
		"progress":               {render.RunOptions{Style: terminal}, []messages.Event{out(0, "1%\r"), out(0, "2%\r")}, "1%\r2%\r\n"},
		"progress in a file":     {render.RunOptions{}, []messages.Event{out(0, "1%\r"), out(0, "2%\r")}, "2%\n"},
		"prefix":                 {render.RunOptions{Style: terminal, Prefix: "s| "}, []messages.Event{out(0, "a\nb"), out(0, "c\n\n"), plain("d\ne")}, "s| a\ns| bc\ns| \ns| d\ns| e\n"},
		"prefix and progress":    {render.RunOptions{Style: terminal, Prefix: "s| "}, []messages.Event{out(0, "1%\r2%")}, "s| 2%\n"},
		"prefix and colour":      {render.RunOptions{Style: colour, Prefix: "s| "}, []messages.Event{out(0, "\x1b[1mx\n\x1b[0m")}, "s| x\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.o.Cells = make([]messages.Cell, 1)
			run := render.NewRun(tc.o)
			var b strings.Builder
			for _, e := range append(tc.events, complete(0)) {
				b.WriteString(run.Event(e))
			}
			got, footer, _ := strings.Cut(b.String(), tc.o.Prefix+strings.Repeat("\x1b[32m", boolInt(tc.o.Colour))+"✓")
			require.Equal(t, tc.want, got)
			require.NotEmpty(t, footer)
		})
	}
}

// TestRunPrefix draws two calls whose lines are told apart.
func TestRunPrefix(t *testing.T) {
	t.Parallel()
	run := render.NewRun(render.RunOptions{Style: render.Style{Terminal: true}, Cells: make([]messages.Cell, 1), Prefix: "a | "})
	got := run.Event(running(0)) + run.Event(out(0, "1\n\n2\nhalf")) + run.Event(complete(0)) +
		run.Event(messages.Error{ErrorDetails: messages.ErrorDetails{Traceback: []string{"E", "", "F"}}})
	require.Equal(t, "a | ▸ [1/1]\na | 1\na | \na | 2\na | half\na | ✓ [1/1]\na | E\na | \na | F\n", got)
}

// TestLongTraceback keeps both ends of a long traceback.
func TestLongTraceback(t *testing.T) {
	t.Parallel()
	long := messages.Error{ErrorDetails: messages.ErrorDetails{Name: "E", Message: "m", Traceback: strings.Split(strings.Repeat("frame\n", 100)+"E: m", "\n")}}
	short := render.NewRun(render.RunOptions{}).Event(long)
	require.Equal(t, 25, strings.Count(short, "\n"))
	require.Contains(t, short, "… 77 more lines (--expand shows them)\n")
	require.True(t, strings.HasSuffix(short, "E: m\n"))
	whole := render.NewRun(render.RunOptions{Expand: true}).Event(long)
	require.Equal(t, 101, strings.Count(whole, "\n"))
}

// TestWidths draws at any width, the very narrow ones too.
func TestWidths(t *testing.T) {
	t.Parallel()
	for width := range 30 {
		s := render.Style{Width: width, Colour: true, Terminal: true}
		for _, l := range render.Tree(tree(), render.TreeOptions{Style: s, Now: treeNow}) {
			require.LessOrEqual(t, len([]rune(render.Plain(l))), max(width, 1000*boolInt(width == 0)), "%d: %q", width, l)
		}
		render.Checks(s, []render.Check{{What: "x"}})
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
