package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
)

func TestCode(t *testing.T) {
	t.Parallel()
	const code = "def f(n):  # two\n\treturn \"日\" * 2\n\x1b[31m"
	require.Equal(t, "def f(n):  # two\n    return \"日\" * 2\n", Code(Style{}, code))
	got := Code(Style{Colour: true}, code)
	require.Equal(t, Code(Style{}, code), Plain(got))
	require.Contains(t, got, "\x1b[35mdef\x1b[0m")
	require.Contains(t, got, "\x1b[32m日\x1b[0m")
	for line := range strings.SplitSeq(Code(Style{Colour: true}, "'''a\nb'''"), "\n") {
		require.Equal(t, strings.Count(line, "m"), 2*strings.Count(line, "\x1b[0m"), "no colour goes on into the next line: %q", line)
	}
}

func TestCollapseAndClamp(t *testing.T) {
	t.Parallel()
	lines := []string{"1", "2", "3", "4 日本語"}
	require.Equal(t, []string{"… 2 more lines (ctrl+o)", "3", "4 日本語"}, Collapse(Style{}, lines, 2, "ctrl+o"))
	require.Equal(t, []string{"… 2 …", "3", "4 日…"}, Collapse(Style{Width: 5}, lines, 2, ""))
	require.Equal(t, lines, Collapse(Style{}, lines, 4, ""))
	long := strings.Repeat("x", 4003)
	require.Equal(t, []string{strings.Repeat("x", 4000) + "… [3 columns omitted]", "short"}, Clamp(Style{}, []string{long, "short"}))
	require.Equal(t, []string{"aa  cc", "b   d"}, Columns(Style{Width: 9}, []string{"aa", "b", "cc", "d"}))
}

func TestInteractiveShowsWhatIsLeft(t *testing.T) {
	t.Parallel()
	plain := func(s string) messages.Bundle { return messages.Bundle{"text/plain": messages.RawJSON(`"` + s + `"`)} }
	out := func(s string) messages.Event { return messages.Stream{Name: messages.StdoutStream, Text: s} }
	for name, tc := range map[string]struct {
		events []messages.Event
		want   []string
	}{
		"nothing":     {},
		"a bar":       {events: []messages.Event{out("10%\r"), out("100%\n")}, want: []string{"100%"}},
		"cleared":     {events: []messages.Event{out("a\n"), messages.ClearOutput{}, out("b\n")}, want: []string{"b"}},
		"waits":       {events: []messages.Event{out("a\n"), messages.ClearOutput{Wait: true}}, want: []string{"a"}},
		"waited":      {events: []messages.Event{out("a\n"), messages.ClearOutput{Wait: true}, out("b\n")}, want: []string{"b"}},
		"an update":   {events: []messages.Event{messages.Display{DisplayID: "d", Data: plain("0")}, out("x\n"), messages.Display{DisplayID: "d", Update: true, Data: plain("1")}}, want: []string{"1", "x"}},
		"of a value":  {events: []messages.Event{messages.ExecuteResult{DisplayID: "d", Data: plain("0")}, messages.Display{DisplayID: "d", Update: true, Data: plain("1")}}, want: []string{"1"}},
		"the frames":  {events: []messages.Event{messages.Error{ErrorDetails: messages.ErrorDetails{Name: "E", Traceback: []string{"long"}, ErrorPlace: messages.ErrorPlace{UserTraceback: "short"}}}}, want: []string{"short"}},
		"no frame":    {events: []messages.Event{messages.Status{Status: messages.CellRunning}, messages.Final{}}},
		"status ends": {events: []messages.Event{messages.Status{Data: messages.RawJSON(`{"op":"pwd","path":"/x"}`)}, out("y")}, want: []string{"y"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Interactive(RunOptions{Cells: []messages.Cell{{Code: "c"}}}, tc.events)
			require.Empty(t, cmp.Diff(tc.want, got[:min(len(got), max(len(tc.want), 1))]))
		})
	}
}
