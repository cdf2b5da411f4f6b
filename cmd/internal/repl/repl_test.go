package repl

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEnterRunsWhatIsComplete(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"1 + 1": true, "f(1,": false, "f(1,\n2)": true, "'''a": false, "'''a\nb'''": true, "x = 'it''s'": true,
		"def f():": false, "def f():\n    return 1": false, "def f():\n    return 1\n": true, "@cached": false,
		"# (": true, "x = '('": true, "while True: pass": true, "a = 1 + \\": false, "d = {'a': 1,\n     'b': 2}": true,
	} {
		var e editor
		e.set(text)
		require.Equal(t, want, e.complete(), "%q", text)
	}
}

func TestEditor(t *testing.T) {
	t.Parallel()
	var e editor
	e.insert("if x:")
	e.newline()
	e.insert("日本")
	require.Equal(t, "if x:\n    日本", e.String())
	require.True(t, e.up())
	require.False(t, e.up())
	require.Equal(t, 5, e.cursor, "the column stays as far as the line goes")
	require.True(t, e.down())
	e.backspace()
	e.move(-99)
	e.insert("\t")
	require.Equal(t, "    if x:\n    本", e.String())
	e.backspace()
	require.Equal(t, 0, e.cursor, "a step of indentation goes at once")
	e.set("math.fl + 1")
	e.cursor = 7
	e.replace(5, "floor(")
	require.Equal(t, "math.floor( + 1", e.String())
	require.Equal(t, 11, e.cursor)
}

func TestHistory(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "history")
	h := loadHistory(path)
	for _, text := range []string{"a = 1", "def f():\n    return 1", "a = 1", "a = 1"} {
		require.NoError(t, h.add(text))
	}
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	h = loadHistory(path)
	require.Equal(t, []string{"a = 1", "def f():\n    return 1", "a = 1"}, h.entries, "what is run twice is kept once")
	_, ok := h.forward()
	require.False(t, ok)
	got, ok := h.back("typed")
	require.True(t, ok)
	require.Equal(t, "a = 1", got)
	got, _ = h.back("")
	require.Equal(t, "def f():\n    return 1", got)
	_, _ = h.forward()
	got, ok = h.forward()
	require.True(t, ok)
	require.Equal(t, "typed", got, "what was being typed comes back")
	h = loadHistory("")
	require.NoError(t, h.add("for this screen alone"))
	got, ok = h.back("")
	require.True(t, ok)
	require.Equal(t, "for this screen alone", got)
}

func TestStatusLine(t *testing.T) {
	t.Parallel()
	parts := []string{"default", "gateway", "idle", "queue 0", "68.9 MiB"}
	for width, want := range map[int][2]string{
		120: {" default · gateway · idle · queue 0 · 68.9 MiB  │ tab completes · f1 inspects · ctrl+o expands · ctrl+t tree", " default · gateway · idle · queue 0 · 68.9 MiB  │ Ctrl-C once more leaves"},
		80:  {" default · gateway · idle · queue 0 · 68.9 MiB  │ tab completes · f1 inspects", " default · gateway · idle · queue 0 · 68.9 MiB  │ Ctrl-C once more leaves"},
		60:  {" default · gateway · idle · queue 0 · 68.9 MiB", " Ctrl-C once more leaves"},
		40:  {" gateway · idle · queue 0 · 68.9 MiB", " Ctrl-C once more leaves"},
		30:  {" idle · queue 0 · 68.9 MiB", " Ctrl-C once more leaves"},
		20:  {" idle · queue 0 · 6…", " Ctrl-C once more l…"},
	} {
		s := render.Style{Width: width}
		require.Equal(t, want[0], statusLine(s, parts, ""), width)
		require.Equal(t, want[1], statusLine(s, parts, "Ctrl-C once more leaves"), width)
	}
}

// TestAnAnswerIsOneLine: a text of several that was pasted stays where it can be mended.
func TestAnAnswerIsOneLine(t *testing.T) {
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
		s.Update(tea.PasteMsg{Content: "4\n1"})
		s.keys("<enter>")
		s.settle()
		require.Contains(t, s.note, "an answer is one line")
		require.Equal(t, "run ask()", fake.said())
		s.keys("<backspace><backspace><enter>")
		s.settle()
		require.Equal(t, "run ask(), answer q1", fake.said())
		require.Contains(t, s.shown(), "how many? 4")
	})
}
