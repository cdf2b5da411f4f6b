package result_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks/artifact"
	"github.com/coppice-run/coppice/sinks/budget"
	"github.com/coppice-run/coppice/sinks/result"
)

// asResult is what a kernel makes of an output.
func asResult(o messages.Output) messages.Result {
	r := messages.Result{Outcome: messages.OutcomeOK, State: messages.StateKept, Truncation: o.Truncation, NotKept: o.NotKept}
	for _, c := range o.Cells {
		r.Cells = append(r.Cells, done(c.Text))
	}
	if o.Artifact != "" {
		r.Artifact = &o.Artifact
	}
	return r
}

// TestTokensOfTheWholeOutput: with a limit of tokens the text is the longest head that
// fits, the sizes in the reminder are those of the whole output, however much that is,
// and the file that it names has all of it.
func TestTokensOfTheWholeOutput(t *testing.T) {
	t.Parallel()
	mixed := &strings.Builder{}
	for i := range 40_000 {
		fmt.Fprintln(mixed, "line number", strings.Repeat("x", i%7), string(rune('a'+i%26)))
	}
	for name, text := range map[string]string{
		"digits":     strings.Repeat("1", 3_000_000) + "\n",
		"long words": strings.Repeat("abcdefghij ", 20_000) + "\n",
		"one letter": strings.Repeat("a\n", 30_000),
		"emoji":      strings.Repeat("😀", 25_000) + "\n",
		"ideographs": strings.Repeat("木", 25_000) + "\n",
		"mixed":      mixed.String(),
		"one word":   strings.Repeat("a", 100_000) + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			var events []messages.Event
			for rest := text; rest != ""; {
				n := budget.Floor(rest, min(len(rest), 10_001))
				events = append(events, out(0, rest[:n]))
				rest = rest[n:]
			}
			o := fold(result.Options{Tokens: 20_000, Store: artifact.New(artifact.Options{Dir: dir})}, 1, events...)
			tr := o.Truncation
			require.NotNil(t, tr)
			require.EqualValues(t, result.EstimateTokens(text), tr.TotalTokens)
			require.EqualValues(t, len(text), tr.TotalBytes)
			require.EqualValues(t, strings.Count(text, "\n"), tr.TotalLines)
			require.True(t, strings.HasPrefix(text, o.Cells[0].Text), "the head, without a hole")
			require.LessOrEqual(t, result.EstimateTokens(o.Cells[0].Text), 20_000)
			require.Greater(t, result.EstimateTokens(o.Cells[0].Text), 19_990, "the longest")
			whole, err := os.ReadFile(tr.Path)
			require.NoError(t, err)
			require.Equal(t, text, string(whole))

			read := result.BuildText(asResult(o))
			require.Contains(t, read, fmt.Sprintf("<system-reminder>\nThe output was too long (about %d tokens, %d line", tr.TotalTokens, tr.TotalLines))
			require.Contains(t, read, "All of it is in "+tr.Path+". ")
		})
	}
}

// TestTokensThatFit: a text that fits is as it is, without a file, also when it was cut
// by the other shape; and of several cells the first ones come first.
func TestTokensThatFit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := artifact.New(artifact.Options{Dir: dir})
	text := strings.Repeat("a\n", 4000)
	o := fold(result.Options{Tokens: 20_000, Store: store}, 1, out(0, text))
	require.Nil(t, o.Truncation)
	require.Empty(t, o.Artifact)
	require.Equal(t, text, o.Cells[0].Text)

	o = fold(result.Options{Tokens: 5, Store: store}, 4, out(0, "1 2 "), out(1, "3 4 5"), out(3, "6"))
	require.Equal(t, []string{"1 2 ", "3", "[not shown]\n"}, []string{o.Cells[0].Text, o.Cells[1].Text, o.Cells[2].Text})
	require.EqualValues(t, 10, o.Truncation.TotalTokens)
	whole, err := os.ReadFile(filepath.Join(dir, "0.python.log"))
	require.NoError(t, err)
	require.Equal(t, "1 2 3 4 56", string(whole))

	// What went wrong is not part of what is cut.
	r := asResult(fold(result.Options{Tokens: 5}, 1, out(0, "1 2 3 4 5 6")))
	r.Outcome, r.Cells[0] = messages.OutcomeError, raised(r.Cells[0].Output)
	require.Equal(t, "1 2 3\n\nCommand exited with code 1\n\n<system-reminder>\nThe output was too long (about 11 tokens, 1 line, 11B) and was cut after about 5 tokens. It was not kept; print less, or print it in parts.\n</system-reminder>", result.BuildText(r))
}

// TestWhatCouldNotBeKept is said at the end, and no text claims a whole file over a
// part of one.
func TestWhatCouldNotBeKept(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("0123456789\n", 10_000)
	t.Run("the cap", func(t *testing.T) {
		t.Parallel()
		store := artifact.New(artifact.Options{Dir: t.TempDir(), MaxBytes: 64 << 10})
		for name, o := range map[string]result.Options{"lines": {Store: store}, "tokens": {Store: store, Tokens: 1000}} {
			got := fold(o, 1, out(0, text), out(0, text))
			read := result.BuildText(asResult(got))
			require.Contains(t, read, got.Artifact+" is not whole: it has the first 64.0KB of 214.8KB of output", name)
			require.NotContains(t, read, "full output", name)
			require.NotContains(t, read, "All of it", name)
			require.Greater(t, strings.Index(read, "is not whole"), len(read)-500, "at the end")
		}
	})
	t.Run("no place", func(t *testing.T) {
		t.Parallel()
		file := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		store := artifact.New(artifact.Options{Dir: filepath.Join(file, "x")})
		for name, o := range map[string]result.Options{"lines": {Store: store}, "tokens": {Store: store, Tokens: 1000}} {
			got := fold(o, 1, out(0, text))
			require.Empty(t, got.Artifact)
			read := result.BuildText(asResult(got))
			require.Contains(t, read, "The full output could not be kept: make artifacts directory", name)
			require.NotContains(t, got.Cells[0].Text, "could not be kept", name)
		}
	})
}

// TestSizesWithinLines: of lines that are shown in part, their count says nothing.
func TestSizesWithinLines(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		strings.Repeat("x", 5<<20):                   "[Showing 50.0KB of 5.0MB, in 1 line (50.0KB limit)]",
		"a\n" + strings.Repeat("x", 5<<20) + "\nb\n": "[Showing 50.0KB of 5.0MB, in 3 lines (50.0KB limit)]",
	} {
		read := result.BuildText(asResult(fold(result.Options{}, 1, out(0, text))))
		require.True(t, strings.HasSuffix(read, want), read[len(read)-200:])
	}
}
