package repl

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
)

// TestKeys type, move and take back.
func TestKeys(t *testing.T) {
	t.Parallel()
	for keys, want := range map[string]string{
		"abc":                              "abc|",
		"abc<left><left>x":                 "ax|bc",
		"abc<home>x<end>y":                 "xabcy|",
		"abc<ctrl+a><right><ctrl+k>":       "a|",
		"abc<left><ctrl+u>":                "|c",
		"abc<left><backspace>":             "a|c",
		"abc<home><delete>":                "|bc",
		"abc<home><ctrl+d>":                "|bc",
		"if x:<alt+enter>y":                "if x:\n    y|",
		"a<alt+enter>b<up>x":               "ax|\nb",
		"a<alt+enter>b<up><down>x":         "a\nbx|",
		"<tab>x":                           "    x|",
		"größe<left><backspace>":           "grö|e",
		"abc<ctrl+c>":                      "|",
		"f(<enter>1":                       "f(\n1|",
		"  <enter>":                        "|",
		"a<alt+enter>bc<up><end><ctrl+k>x": "ax|\nbc",
	} {
		inScreen(t, &session{}, func(s *screen) {
			s.keys(keys)
			text := string(s.editor.text[:s.editor.cursor]) + "|" + string(s.editor.text[s.editor.cursor:])
			require.Equal(t, want, text, keys)
		})
	}
}

// The first screen says where one is and what to press, whole in a narrow terminal, too.
func TestTheFirstScreen(t *testing.T) {
	t.Parallel()
	inScreen(t, &session{}, func(s *screen) {
		for _, width := range []int{120, 80, 60, 40} {
			s.Update(tea.WindowSizeMsg{Width: width, Height: 24})
			require.Contains(t, strings.Join(strings.Fields(s.shown()), " "), "Python in the session s, on the fake backend, in "+s.o.Session.Key().Cwd)
			require.Contains(t, strings.Join(strings.Fields(s.shown()), " "), "enter runs a cell · tab completes · ctrl+d leaves")
			require.NotContains(t, s.shown(), "…")
		}
	})
}

// TestACellIsRunAndShown, and the text is empty for the next one, which Up brings back.
func TestACellIsRunAndShown(t *testing.T) {
	t.Parallel()
	fake := &session{events: func(_ context.Context, code string, yield func(messages.Event) bool) {
		yield(messages.Stream{Name: messages.StdoutStream, Text: "said " + code + "\n"})
		yield(messages.Final{Result: messages.Result{Outcome: messages.OutcomeOK, State: messages.StateKept}})
	}}
	inScreen(t, fake, func(s *screen) {
		require.Contains(t, s.status(), "no kernel yet")
		s.keys("one<enter>two<enter>")
		require.Contains(t, s.status(), "a cell runs; Ctrl-C interrupts it")
		require.Equal(t, "two", s.editor.String(), "it is not lost")
		s.settle()
		s.keys("<enter>")
		s.settle()
		require.Equal(t, "run one, run two", fake.said())
		require.Contains(t, s.shown(), ">>> one\nsaid one\n")
		require.Contains(t, s.shown(), ">>> two\nsaid two\n")
		require.Contains(t, s.status(), "s · fake · idle · queue 2 · 3.0 MiB")
		s.keys("<up><up>")
		require.Equal(t, "one", s.editor.String())
		s.keys("<down>")
		require.Equal(t, "two", s.editor.String())
		s.keys("<ctrl+l>")
		require.NotContains(t, s.shown(), "said")
	})
}

// TestACellThatFails says why in the status line.
func TestACellThatFails(t *testing.T) {
	t.Parallel()
	inScreen(t, &session{fail: errors.New("there is no host")}, func(s *screen) {
		s.keys("x<enter>")
		s.settle()
		require.Nil(t, s.running)
		require.Contains(t, s.status(), "there is no host")
	})
}

// TestAnInterruptedCell ends, and the screen goes on; Ctrl-C twice on empty text leaves,
// and so do Ctrl-D and exit.
func TestAnInterruptedCell(t *testing.T) {
	t.Parallel()
	fake := &session{}
	fake.events = func(_ context.Context, _ string, yield func(messages.Event) bool) {
		<-fake.stopped
		yield(messages.Final{Result: messages.Result{Outcome: messages.OutcomeCancelled}})
	}
	inScreen(t, fake, func(s *screen) {
		s.keys("loop()<enter>")
		s.settle()
		require.Contains(t, s.status(), "running 0")
		require.Nil(t, s.keys("<ctrl+d>"), "a cell runs")
		s.keys("<ctrl+c>")
		require.Contains(t, s.status(), "interrupting the cell")
		s.settle()
		require.Equal(t, "run loop(), interrupt", fake.said())
		require.NotContains(t, s.status(), "interrupting")
		require.Nil(t, s.keys("<ctrl+c>"))
		require.Contains(t, s.status(), "Ctrl-C once more leaves")
		require.Nil(t, s.keys("x<backspace><ctrl+c>"), "another key was pressed in between")
		require.IsType(t, tea.QuitMsg{}, s.keys("<ctrl+c>")())
		require.IsType(t, tea.QuitMsg{}, s.keys("<ctrl+d>")())
		for _, text := range []string{"exit", "quit", " exit() ", "quit()"} {
			require.IsType(t, tea.QuitMsg{}, s.keys(text+"<enter>")(), text)
			s.keys("<ctrl+u>")
		}
		require.Nil(t, s.keys("exit_code<enter>"))
	})
}

// TestAnInterruptThatCannotBeMade says so.
func TestAnInterruptThatCannotBeMade(t *testing.T) {
	t.Parallel()
	fake := &session{}
	fake.events = func(context.Context, string, func(messages.Event) bool) { <-fake.stopped }
	inScreen(t, fake, func(s *screen) {
		s.keys("x<enter>")
		synctest.Wait()
		fake.fail = errors.New("the host has ended")
		s.keys("<ctrl+c>")
		require.Contains(t, s.status(), "the host has ended")
		s.settle()
	})
}

// TestAQuestion is answered in the place of the next cell; a password is not shown, and
// no answer is kept.
func TestAQuestion(t *testing.T) {
	t.Parallel()
	fake := &session{}
	fake.events = func(_ context.Context, _ string, yield func(messages.Event) bool) {
		yield(messages.InputRequest{ID: "q1", Prompt: "word? ", Password: true})
		<-fake.answered
		yield(messages.Final{Result: messages.Result{Outcome: messages.OutcomeOK}})
	}
	inScreen(t, fake, func(s *screen) {
		s.keys("ask()<enter>")
		s.settle()
		require.Contains(t, s.status(), "waiting for input")
		s.keys("hush")
		require.Contains(t, s.shown(), "  ? ••••")
		require.NotContains(t, s.shown(), "hush")
		s.keys("<enter>")
		s.settle()
		require.Equal(t, "run ask(), answer q1", fake.said())
		require.Nil(t, s.asking)
		require.NotContains(t, s.shown(), "hush")
		require.Contains(t, s.shown(), "••••")
		s.keys("<up>")
		require.Equal(t, "ask()", s.editor.String())
	})
}

// TestAnAnswer stands behind its question, as in a terminal.
func TestAnAnswer(t *testing.T) {
	t.Parallel()
	fake := &session{}
	fake.events = func(_ context.Context, _ string, yield func(messages.Event) bool) {
		yield(messages.InputRequest{ID: "q1", Prompt: "how many? "})
		<-fake.answered
		yield(messages.Final{Result: messages.Result{Outcome: messages.OutcomeOK}})
	}
	inScreen(t, fake, func(s *screen) {
		s.keys("ask()<enter>")
		s.settle()
		s.keys("41<enter>")
		s.settle()
		require.Contains(t, s.shown(), "how many? 41")
	})
}

// TestCompletion puts in what all matches share, and lists them when that is nothing new.
func TestCompletion(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		typed   string
		found   coppice.Completion
		fail    error
		want    string
		shown   string
		nothing bool
	}{
		"one":               {typed: "x = pri", found: coppice.Completion{Matches: []string{"print"}, Start: 4}, want: "x = print"},
		"a shared part":     {typed: "p", found: coppice.Completion{Matches: []string{"prefix", "precise"}}, want: "pre", shown: "precise"},
		"nothing new":       {typed: "pr", found: coppice.Completion{Matches: []string{"print", "prod"}}, want: "pr", shown: "prod"},
		"behind umlauts":    {typed: "ü = grö", found: coppice.Completion{Matches: []string{"größe"}, Start: len("ü = ")}, want: "ü = größe"},
		"cut in a letter":   {typed: "gr", found: coppice.Completion{Matches: []string{"größe", "grün"}}, want: "gr", shown: "grün"},
		"none":              {typed: "zz", want: "zz", shown: "nothing completes this"},
		"it cannot be told": {typed: "zz", fail: errors.New("no kernel"), want: "zz", shown: "no kernel"},
		"another spelling":  {typed: "PR", found: coppice.Completion{Matches: []string{"print"}}, want: "PR"},
	} {
		fake := &session{complete: tc.found, fail: tc.fail}
		inScreen(t, fake, func(s *screen) {
			s.keys(tc.typed + "<tab>")
			s.settle()
			require.Equal(t, "complete "+tc.typed, fake.said(), name)
			require.Equal(t, tc.want, s.editor.String(), name)
			require.Contains(t, s.shown(), tc.shown, name)
		})
	}
	fake := &session{complete: coppice.Completion{Matches: []string{"print"}}}
	inScreen(t, fake, func(s *screen) {
		s.keys("pr<tab>o")
		s.settle()
		require.Equal(t, "pro", s.editor.String(), "what comes too late is dropped")
	})
}

// TestInspection shows what a name is, up to the next key.
func TestInspection(t *testing.T) {
	t.Parallel()
	fake := &session{inspect: "print(*args)\nPrints."}
	inScreen(t, fake, func(s *screen) {
		s.keys("print<f1>")
		s.settle()
		require.Equal(t, "inspect print", fake.said())
		require.Contains(t, s.shown(), "print(*args)\nPrints.")
		s.keys("x")
		require.NotContains(t, s.shown(), "Prints.")
		fake.inspect = ""
		s.keys("<f1>")
		s.settle()
		require.Contains(t, s.status(), "there is nothing to inspect here")
		fake.fail = errors.New("no kernel")
		s.keys("<f1>")
		s.settle()
		require.Contains(t, s.status(), "no kernel")
	})
	busy := &session{}
	busy.events = func(context.Context, string, func(messages.Event) bool) { <-busy.stopped }
	inScreen(t, busy, func(s *screen) {
		s.keys("x<enter>y<tab>")
		require.Contains(t, s.status(), "completion asks the session and has to wait")
		s.keys("<f1>")
		require.Contains(t, s.status(), "inspection asks the session and has to wait")
		s.keys("<ctrl+c>")
		s.settle()
	})
}

// TestTheTranscript scrolls, expands, and shows the tree below it on demand.
func TestTheTranscript(t *testing.T) {
	t.Parallel()
	fake := &session{events: func(_ context.Context, _ string, yield func(messages.Event) bool) {
		yield(messages.Stream{Name: messages.StdoutStream, Text: strings.Repeat("line\n", 59) + "last\n"})
		yield(messages.Final{Result: messages.Result{Outcome: messages.OutcomeOK}})
	}}
	inScreen(t, fake, func(s *screen) {
		s.keys("x<enter>")
		s.settle()
		require.Contains(t, s.shown(), "ctrl+o to expand")
		s.keys("<ctrl+o>")
		require.NotContains(t, s.shown(), ">>> x")
		require.Contains(t, s.shown(), "last")
		s.keys("<pgup><pgup><pgup><pgup><pgup>")
		require.Contains(t, s.shown(), ">>> x")
		require.NotContains(t, s.shown(), "last")
		s.keys("<pgdown><pgdown><pgdown><pgdown>")
		require.Contains(t, s.shown(), "last")
		s.keys("<ctrl+t>")
		s.settle()
		require.Contains(t, s.shown(), "supervisor")
		require.Equal(t, 30, strings.Count(s.shown(), "\n")+1, "the screen is full, and no more")
	})
}

// TestOutputIsBounded: of a flood the newest is kept, and the screen says so.
func TestOutputIsBounded(t *testing.T) {
	t.Parallel()
	x := &entry{}
	for range 10 {
		x.add(messages.Stream{Name: messages.StdoutStream, Text: strings.Repeat("x", 1<<20)})
	}
	require.LessOrEqual(t, x.bytes, keepBytes)
	require.NotEmpty(t, x.events)
	require.True(t, x.dropped)
	huge := &entry{}
	huge.add(messages.Stream{Text: strings.Repeat("x", 2*keepBytes)})
	require.Len(t, huge.events, 1, "one that is too large is kept all the same")
	inScreen(t, &session{}, func(s *screen) {
		s.entries = []*entry{x}
		require.Contains(t, s.shown(), "earlier output is not shown here")
	})
}

// TestTheTreeIsAskedFor twice a second, and left out when there is none.
func TestTheTreeIsAskedFor(t *testing.T) {
	t.Parallel()
	inScreen(t, &session{}, func(s *screen) {
		from := time.Now()
		_, next := s.Update(tickMsg{})
		s.settle()
		require.Equal(t, "supervisor", s.node.Name)
		require.IsType(t, tickMsg{}, next())
		require.Equal(t, 500*time.Millisecond, time.Since(from))
		s.o.Snapshot = func(context.Context) (messages.Node, error) { return messages.Node{}, errors.New("it goes down") }
		s.Update(tickMsg{})
		s.settle()
		require.Empty(t, s.node.Name)
	})
}

// TestAPaste is typed as it is.
func TestAPaste(t *testing.T) {
	t.Parallel()
	inScreen(t, &session{}, func(s *screen) {
		s.Update(tea.PasteMsg{Content: "a = 1\r\nb = 2"})
		require.Equal(t, "a = 1\nb = 2", s.editor.String())
		s.width = 0
		require.Empty(t, s.View().Content, "before the size is known nothing is drawn")
	})
}

// TestHostileOutput puts nothing on the screen that a terminal obeys.
func TestHostileOutput(t *testing.T) {
	t.Parallel()
	const text = "n\x1b]52;c;RVZJTA==\x07\x1b]0;T\x07\u009b2J\u202ex"
	fake := &session{events: func(_ context.Context, _ string, yield func(messages.Event) bool) {
		yield(messages.Stream{Name: messages.StdoutStream, Text: text + "\n"})
		yield(messages.Error{ErrorDetails: messages.ErrorDetails{Name: text, Message: text, Traceback: []string{text}}})
		yield(messages.Final{Result: messages.Result{Outcome: messages.OutcomeLost, State: messages.StateLost, Reason: text}})
	}}
	inScreen(t, fake, func(s *screen) {
		s.keys("one<enter>")
		s.settle()
		require.NotContains(t, s.View().Content, "RVZJTA")
		require.False(t, strings.ContainsFunc(s.shown(), func(r rune) bool { return r < ' ' && r != '\n' || r >= 0x7f && r <= 0x9f || r == 0x202e }), "%q", s.shown())
	})
}
