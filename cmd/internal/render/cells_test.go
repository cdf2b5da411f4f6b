package render_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/messages"
)

// results are calls that have ended.
var results = map[string]struct {
	cells []messages.Cell
	r     messages.Result
}{
	"ok": {
		cells: []messages.Cell{{Title: "load", Code: numberedCode(14)}, {Code: "\n# 東京 and 👩‍👩‍👧: what is wide\nprint('a')\n"}},
		r: messages.Result{
			Outcome: messages.OutcomeOK, State: messages.StateKept,
			Cells: []messages.CellResult{
				{Index: 0, Title: "load", Status: messages.CellComplete, Output: strings.TrimRight(strings.Repeat("a line of output that is longer than a narrow terminal\n", 3)+numberedCode(20), "\n"), DurationMS: 1240, Events: []messages.RawJSON{
					raw(`{"op":"read","path":"a/folder/with/a/long/name/cities.csv","chars":120}`), raw(`{"op":"ls","count":3,"path":"."}`), raw(`{"op":"log","message":"x"}`), raw(`{"op":"log","message":"y"}`),
				}},
				{Index: 1, Status: messages.CellComplete, Output: strings.Repeat("東京", 60) + "\n\tafter a tab", DurationMS: 3},
			},
			JSON:   []messages.RawJSON{raw(`{"rows":[1,2,3,4,5,6,7],"name":"東京","deep":{"er":{"est":1}}}`), raw(`7`)},
			Images: []messages.Image{{MIME: "image/png", Data: png}},
		},
	},
	"failed": {
		cells: []messages.Cell{{Code: "x = 1"}, {Title: "divide", Code: "x / 0"}, {Title: "never", Code: "x"}},
		r: messages.Result{
			Outcome: messages.OutcomeError, State: messages.StateKept,
			Cells: []messages.CellResult{
				{Index: 0, Status: messages.CellComplete, DurationMS: 1},
				{Index: 1, Title: "divide", Status: messages.CellError, DurationMS: 2, Output: "Traceback (most recent call last):\n  File \"<cell 2>\", line 1, in <module>\n    x / 0\n    ~~^~~\nZeroDivisionError: division by zero"},
				{Index: 2, Title: "never", Status: messages.CellPending},
			},
		},
	},
	"timeout": {
		cells: []messages.Cell{{Code: "loop()"}},
		r: messages.Result{
			Outcome: messages.OutcomeTimeout, State: messages.StateLost, Reason: "it did not stop when it was interrupted", Artifact: new("artifact://3"), StdinRequested: true,
			Truncation: &messages.Truncation{Direction: "middle", TruncatedBy: "bytes", TotalLines: 90_000, TotalBytes: 3 << 20, OutputLines: 100, OutputBytes: 50 << 10},
			Cells:      []messages.CellResult{{Index: 0, Status: messages.CellError, DurationMS: 2000, Output: strings.Repeat("x", 5000)}},
		},
	},
	"hostile": {
		cells: []messages.Cell{{Title: "t\x1b]0;owned\a\nu", Code: "print('\x1b[2J')"}},
		r:     messages.Result{Outcome: messages.OutcomeOK, Cells: []messages.CellResult{{Title: "t\x1b]0;owned\a\nu", Status: messages.CellRunning, Output: "\x1b[2Ja\x1b[31mred\x1b]52;c;aGk=\a", Events: []messages.RawJSON{raw(`{`)}}}},
	},
	"nothing": {},
}

func numberedCode(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "value_%d = %d\n", i+1, i+1)
	}
	return b.String()
}

// widths are those of a narrow, a usual, a wide and a very wide terminal.
var widths = []int{40, 80, 120, 200}

// colours are the only sequences that text for a terminal holds: those to which
// its own theme gives a look, on dark ground and on light. White and black,
// which vanish on one of the two, and bright ones are not among them.
var colours = regexp.MustCompile("^\x1b\\[(0|1|2|3[1-6])m$")

var sequence = regexp.MustCompile("\x1b[^m]*m?")

func TestCellView(t *testing.T) {
	t.Parallel()
	for name, call := range results {
		var all strings.Builder
		for _, width := range widths {
			for _, expand := range []bool{false, true} {
				for _, colour := range []bool{false, true} {
					s := render.Style{Width: width, Colour: colour, Terminal: true}
					lines := render.CellView(render.RunOptions{Style: s, Expand: expand, Cells: call.cells, Timeout: 2 * time.Second}, call.r)
					if !expand || width == 80 {
						fmt.Fprintf(&all, "=== %d columns, expanded %v, colour %v\n%s\n", width, expand, colour, strings.Join(lines, "\n"))
					}
					for _, l := range lines {
						if !expand {
							require.LessOrEqual(t, ansi.StringWidth(l), width, "%q", l)
						}
						for _, seq := range sequence.FindAllString(l, -1) {
							require.Regexp(t, colours, seq)
						}
						require.True(t, colour || !strings.Contains(l, "\x1b"))
					}
				}
			}
		}
		golden(t, "cells_"+name, all.String())
	}
}

// stripes is a PNG of 6 by 4 pixels: red, green and blue, and white below.
const stripes = "iVBORw0KGgoAAAANSUhEUgAAAAYAAAAECAIAAAAiZtkUAAAAFklEQVR42mP4z8AARAzIFDYhDIBFCABTPy/RUgrRdwAAAABJRU5ErkJggg=="

// TestImagesOfTerminals keeps what each kind of terminal gets for one picture. The
// colours of a sixel picture have no order; TestSixel reads it.
func TestImagesOfTerminals(t *testing.T) {
	t.Parallel()
	b := messages.Bundle{"image/png": text(stripes), "text/plain": text("<Figure size 6x4 with 1 Axes>")}
	var all strings.Builder
	for _, protocol := range []render.Protocol{render.NoImages, render.Kitty, render.ITerm, render.Blocks} {
		s := render.Style{Width: 40, Colour: protocol == render.Blocks, Terminal: true, Images: protocol}
		fmt.Fprintf(&all, "=== %q\n%s\n", protocol, strings.Join(render.Bundle(s, b), "\n"))
	}
	golden(t, "images", all.String())
}

// TestWidthsOfRuns draws the stories of calls at each width: our own lines fit,
// and are the same on every ground.
func TestWidthsOfRuns(t *testing.T) {
	t.Parallel()
	for name, call := range calls {
		for _, width := range widths {
			t.Run(fmt.Sprint(name, width), func(t *testing.T) {
				t.Parallel()
				s := render.Style{Width: width, Colour: true, Terminal: true}
				run := render.NewRun(render.RunOptions{Style: s, Cells: call.cells, Expand: true, Timeout: 2 * time.Second, Now: ticking()})
				for _, e := range call.events {
					got := run.Event(e)
					for _, seq := range sequence.FindAllString(got, -1) {
						if _, printed := e.(messages.Stream); !printed { // what code colours, it colours
							require.Regexp(t, `^(\x1b\[(0|1|2|3[1-6]|39|92)m)$`, seq)
						}
					}
					switch e.(type) {
					case messages.Status, messages.Final, messages.Notice:
						for l := range strings.SplitSeq(got, "\n") {
							require.LessOrEqual(t, ansi.StringWidth(l), width, "%q", l)
						}
					default:
					}
				}
			})
		}
	}
}

// TestWhatACellShowed stands with that cell, once, and not behind another one's error.
func TestWhatACellShowed(t *testing.T) {
	t.Parallel()
	r := messages.Result{
		Outcome: messages.OutcomeError, State: messages.StateKept,
		Cells: []messages.CellResult{
			{Index: 0, Status: messages.CellComplete, Output: "{\n  \"a\": 1\n}\n<Tree>\n"},
			{Index: 1, Status: messages.CellError, Output: "ZeroDivisionError: division by zero"},
		},
		JSON:   []messages.RawJSON{raw(`{"a":1}`), raw(`{"b":2}`)},
		Images: []messages.Image{{MIME: messages.MIMEPNG, Data: png}},
	}
	shown := map[int][]messages.Bundle{0: {
		{messages.MIMEJSON: raw(`{"a":1}`)},
		{messages.MIMEJSON: raw(`{"b":2}`), messages.MIMEPlain: raw(`"<Tree>"`)},
		{messages.MIMEPNG: raw(`"` + png + `"`)},
	}}
	text := strings.Join(render.CellView(render.RunOptions{Shown: shown}, r), "\n")
	cell, rest, found := strings.Cut(text, "✗ [2/2]")
	require.True(t, found)
	require.Equal(t, 1, strings.Count(cell, "a: 1")+strings.Count(cell, `"a": 1`), "its text holds it")
	require.Contains(t, cell, "└─ b: 2")
	require.Contains(t, cell, "▣ image/png")
	require.True(t, strings.HasSuffix(rest, "ZeroDivisionError: division by zero"), rest)
}
