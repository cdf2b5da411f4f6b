package render_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/messages"
)

// TestStatusLine tells events by the form of their op.
func TestStatusLine(t *testing.T) {
	t.Parallel()
	for event, want := range map[string]string{
		`{"op":"read","path":"a.txt","chars":1}`:                     "read 1 char · from a.txt",
		`{"op":"write","path":"a.txt","chars":12}`:                   "write 12 chars · to a.txt",
		`{"op":"find","count":2,"pattern":"*.go"}`:                   `find 2 matches for "*.go"`,
		`{"op":"grep","count":1,"pattern":"x","path":"a.txt"}`:       `grep 1 match for "x" · in a.txt`,
		`{"op":"ls","count":3,"path":"."}`:                           "ls 3 entries · .",
		`{"op":"env","key":"HOME","value":"/x"}`:                     "env HOME=/x",
		`{"op":"env","count":4}`:                                     "env 4 variables",
		`{"op":"stat","is_dir":true,"path":"a"}`:                     "stat directory · a",
		`{"op":"mv","src":"a","dst":"b"}`:                            "mv a → b",
		`{"op":"wc","lines":1,"words":2,"chars":3}`:                  "wc 1L 2W 3C",
		`{"op":"diff","identical":false}`:                            "diff files differ",
		`{"op":"sh","cmd":"ls","code":2}`:                            "sh ls · exit code 2",
		`{"op":"tree","count":4,"path":"x"}`:                         "tree 4 · x",
		`{"op":"read","error":"no such file"}`:                       "read: no such file",
		`{"op":"phase"}`:                                             "phase",
		`{"count":1}`:                                                "status 1",
		`{"op":"log","message":"two\nlines \u001b[2Jand an escape"}`: "log two lines and an escape",
		`7`: "unreadable status event",
	} {
		require.Equal(t, want, render.StatusLine(render.Style{}, raw(event)), event)
	}
}

// TestStatusLines shows the first few and how many more there are.
func TestStatusLines(t *testing.T) {
	t.Parallel()
	many := make([]messages.RawJSON, 12)
	for i := range many {
		many[i] = raw(`{"op":"log"}`)
	}
	require.Equal(t, []string{"└─ log"}, render.StatusLines(render.Style{}, many[:1], false))
	require.Equal(t, []string{"├─ log", "├─ log", "├─ log", "└─ … 9 more"}, render.StatusLines(render.Style{}, many, false))
	require.Len(t, render.StatusLines(render.Style{}, many, true), 11)
	require.Empty(t, render.StatusLines(render.Style{}, nil, true))
}

// TestStatusDisplay: what arrives as a display with a brand's type is a status
// event, in both views of a call.
func TestStatusDisplay(t *testing.T) {
	t.Parallel()
	events := []messages.Event{
		running(0), out(0, "text\n"),
		messages.Display{Position: at(0), Data: messages.Bundle{"application/x-brand-status": raw(`{"op":"read","path":"a.txt","chars":1}`)}},
		messages.Display{Position: at(0), Data: messages.Bundle{"application/x-other": raw(`{"op":"read"}`)}},
		complete(0),
	}
	run, got := render.NewRun(render.RunOptions{Cells: make([]messages.Cell, 1)}), ""
	for _, e := range events {
		got += run.Event(e)
	}
	require.Equal(t, "▸ [1/1]\ntext\n▣ application/x-other, 13 B\n└─ read 1 char · from a.txt\n✓ [1/1]\n", got)
	require.Equal(t, []string{"text", "▣ application/x-other, 13 B", "└─ read 1 char · from a.txt"}, render.Interactive(render.RunOptions{}, events))
}

// TestJSONTree keeps the order of members and cuts what is deep or long.
func TestJSONTree(t *testing.T) {
	t.Parallel()
	tree := func(s string, expand bool) string {
		return strings.Join(render.JSONTree(render.Style{}, raw(s), expand), "\n")
	}
	require.Equal(t, "Object(2)\n├─ z: 1.50\n└─ a: Array(1)\n   └─ Object(1)", tree(`{"z":1.50,"a":[{"b":null}]}`, false))
	require.Equal(t, "Object(1)\n└─ a: Array(1)\n   └─ Object(1)\n      └─ b: null", tree(`{"a":[{"b":null}]}`, true))
	require.Equal(t, "Array(7)\n├─ 1\n├─ 2\n├─ 3\n├─ 4\n├─ 5\n└─ … 2 more items", tree(`[1,2,3,4,5,6,7]`, false))
	require.Equal(t, `"text"`, tree(`"text"`, false))
	require.Contains(t, tree(`{"a":`, false), "not JSON")
	require.Contains(t, tree(strings.Repeat("[", 100000), false), "not JSON")
}

// TestBundle prefers the text that suits a terminal.
func TestBundle(t *testing.T) {
	t.Parallel()
	bundle := func(b messages.Bundle) string { return strings.Join(render.Bundle(render.Style{}, b), "\n") }
	require.Equal(t, "**a**", bundle(messages.Bundle{"text/plain": text("a"), "text/markdown": text("**a**")}))
	require.Equal(t, "▣ image/png, 2×1, 71 B\n<Figure>", bundle(messages.Bundle{"image/png": text(png), "text/plain": text("<Figure>")}))
	require.Equal(t, "▣ image/jpeg, not readable", bundle(messages.Bundle{"image/jpeg": text("%")}))
	require.Equal(t, "▣ image/png, 2 B", bundle(messages.Bundle{"image/png": text("aGk=")}))
	require.Equal(t, "▣ text/html, 5 B", bundle(messages.Bundle{"text/html": raw(`"<p>"`)}))
	require.Empty(t, bundle(messages.Bundle{"application/json": raw(`{}`)}), "JSON is drawn by JSONTree")
	require.Empty(t, bundle(nil))
	require.Empty(t, bundle(messages.Bundle{"application/json": raw(`{}`), "text/plain": text("<IPython.core.display.JSON object>")}))
	require.Equal(t, "<IPython.core.display.JSON object>", bundle(messages.Bundle{"text/plain": text("<IPython.core.display.JSON object>")}))
}

// FuzzRun draws whatever a kernel prints: plain text never has an escape, and
// what goes to a terminal has colours at most.
func FuzzRun(f *testing.F) {
	f.Add("10%\r20%\x1b[2J\n", "\x1b]52;c;aGk=\a")
	f.Add("\x1b", "[31mred\x1b[0m\xff")
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, style := range styles {
			run := render.NewRun(render.RunOptions{Style: style, Cells: []messages.Cell{{Title: b}}})
			got := run.Event(running(0)) + run.Event(out(0, a)) + run.Event(out(0, b)) +
				run.Event(messages.Notice{Text: a}) +
				run.Event(messages.Status{Data: raw(a)}) +
				run.Event(messages.Display{Data: messages.Bundle{"text/plain": text(a), "application/json": raw(b)}}) +
				run.Event(messages.Error{ErrorDetails: messages.ErrorDetails{Name: a, Message: b, Traceback: []string{a, b}}}) +
				run.Event(failed(0)) +
				run.Event(messages.Final{Result: messages.Result{Outcome: messages.OutcomeLost, Reason: b}})
			if !style.Colour && strings.Contains(got, "\x1b") {
				t.Errorf("an escape in plain text: %q", got)
			}
			for rest := got; ; {
				i := strings.IndexByte(rest, 0x1b)
				if i < 0 {
					break
				}
				rest = rest[i:]
				end := strings.IndexAny(rest, "mK")
				if end < 2 || rest[1] != '[' || strings.Trim(rest[2:end], "0123456789;:") != "" {
					t.Fatalf("more than a colour: %q", rest[:min(len(rest), 20)])
				}
				rest = rest[end:]
			}
		}
	})
}
