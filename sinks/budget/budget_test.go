package budget_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/sinks/budget"
)

func window(o budget.Options, text string) *budget.Window {
	w := budget.New(o)
	w.Write([]byte(text))
	return w
}

// numbered returns n lines: 1, 2, 3 ….
func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintln(&b, i+1)
	}
	return b.String()
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	require.Equal(t, budget.Options{Bytes: 51200, Lines: 3000, HeadBytes: 20480}, budget.Options{}.WithDefaults())
	require.Equal(t, budget.Options{Bytes: 100, Lines: 5, HeadBytes: 40}, budget.Options{Bytes: 100, Lines: 5}.WithDefaults())
	require.Equal(t, budget.Options{Bytes: 100, Lines: 3000, HeadBytes: 100}, budget.Options{Bytes: 100, HeadBytes: 300}.WithDefaults())
	require.Equal(t, 0, budget.Options{TailOnly: true, HeadBytes: 7}.WithDefaults().HeadBytes)
}

func TestText(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		o     budget.Options
		in    string
		want  string
		stats budget.Stats
	}{
		"empty":         {in: "", want: ""},
		"small":         {in: "a\nb", want: "a\nb", stats: budget.Stats{TotalBytes: 3, TotalLines: 2, ShownBytes: 3, ShownLines: 2, HeadLines: 2}},
		"exactly fits":  {o: budget.Options{Bytes: 10}, in: "12345\n789\n", want: "12345\n789\n", stats: budget.Stats{TotalBytes: 10, TotalLines: 2, ShownBytes: 10, ShownLines: 2, TailLines: 2}},
		"one too many":  {o: budget.Options{Bytes: 10}, in: "1\n3\n56789\nb", want: "1\n3\n[… 1B elided …]\n6789\nb", stats: budget.Stats{TotalBytes: 11, TotalLines: 4, ShownBytes: 10, ShownLines: 4, HeadLines: 2, TailLines: 2, Truncated: true, By: "bytes"}},
		"by lines":      {o: budget.Options{Bytes: 100, Lines: 5}, in: numbered(9), want: "1\n2\n[… 4 lines, 8B elided …]\n7\n8\n9\n", stats: budget.Stats{TotalBytes: 18, TotalLines: 9, ShownBytes: 10, ShownLines: 5, HeadLines: 2, TailLines: 3, Truncated: true, By: "lines"}},
		"tail only":     {o: budget.Options{Lines: 2, TailOnly: true}, in: numbered(9), want: "8\n9\n", stats: budget.Stats{TotalBytes: 18, TotalLines: 9, ShownBytes: 4, ShownLines: 2, TailLines: 2, Truncated: true, By: "lines"}},
		"one long line": {o: budget.Options{Bytes: 10}, in: "abcdefghijklmnop", want: "abcd\n[… 6B elided …]\nklmnop", stats: budget.Stats{TotalBytes: 16, TotalLines: 1, ShownBytes: 10, ShownLines: 1, TailLines: 1, Truncated: true, By: "bytes"}},
		"characters":    {o: budget.Options{Bytes: 11}, in: "ééééééééé", want: "éé\n[… 8B elided …]\nééé", stats: budget.Stats{TotalBytes: 18, TotalLines: 1, ShownBytes: 10, ShownLines: 1, TailLines: 1, Truncated: true, By: "bytes"}},
		"columns":       {o: budget.Options{Columns: 4}, in: "1234\n12345678\nééé\n", want: "1234\n1234…\néé…\n", stats: budget.Stats{TotalBytes: 21, TotalLines: 3, ShownBytes: 21, ShownLines: 3, HeadLines: 3, CutLines: 2, CutBytes: 6}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := window(tc.o, tc.in)
			require.Equal(t, tc.want, w.Text())
			require.Empty(t, cmp.Diff(tc.stats, w.Stats()))
		})
	}
}

func TestLongLineAtTheEndsIsShown(t *testing.T) {
	t.Parallel()
	w := window(budget.Options{Bytes: 100, HeadBytes: 40}, "a\n"+strings.Repeat("x", 500)+"\nb\n")
	require.Equal(t, "a\n"+strings.Repeat("x", 38)+"\n[… 405B elided …]\n"+strings.Repeat("x", 57)+"\nb\n", w.Text())
	require.EqualValues(t, 3, w.Stats().ShownLines)
}

func TestSlots(t *testing.T) {
	t.Parallel()
	w := window(budget.Options{Bytes: 50, HeadBytes: 20}, "before\n")
	s := w.Slot([]byte("50%\n"))
	w.Write([]byte("after\n"))
	require.True(t, s.Set([]byte("100%\n")))
	require.Equal(t, "before\n100%\nafter\n", w.Text())
	require.EqualValues(t, 18, w.Stats().TotalBytes)

	require.True(t, s.Set([]byte("line 1\nline 2\nline 3\n")), "it outgrows the head")
	require.Equal(t, "before\nline 1\nline 2\nline 3\nafter\n", w.Text())
	require.False(t, w.Truncated(), "all of it still fits")

	w.Write([]byte(strings.Repeat("x\n", 10)))
	require.True(t, w.Truncated())
	require.False(t, s.Set([]byte("gone")), "part of it was elided")
	require.Equal(t, "before\n[… 7B elided …]\nline 2\nline 3\nafter\n"+strings.Repeat("x\n", 10), w.Text())

	late := w.Slot([]byte("late\n"))
	require.True(t, late.Set(nil))
	require.True(t, late.Set([]byte("later\n")))
	require.True(t, strings.HasSuffix(w.Text(), "x\nlater\n"))
	w.Reset()
	require.False(t, late.Set([]byte("gone")))
	require.Empty(t, cmp.Diff(budget.Stats{}, w.Stats()))
}

// TestSlotInHeadGrowsAfterElision: the head cannot hold the slot any more and
// what follows it in the text is gone, so it goes too.
func TestSlotInHeadGrowsAfterElision(t *testing.T) {
	t.Parallel()
	w := window(budget.Options{Bytes: 50, HeadBytes: 20}, "1\n")
	s := w.Slot([]byte("s\n"))
	w.Write([]byte(numbered(100)))
	require.True(t, w.Truncated())
	total := w.Stats().TotalBytes
	require.True(t, s.Set([]byte(strings.Repeat("y\n", 20))))
	require.False(t, s.Set([]byte("z\n")))
	require.True(t, strings.HasPrefix(w.Text(), "1\n[… "), w.Text())
	require.Equal(t, total+38, w.Stats().TotalBytes)
}

func TestLimit(t *testing.T) {
	t.Parallel()
	w := window(budget.Options{Bytes: 1000}, numbered(50))
	bytes, lines := w.Used()
	require.Equal(t, []int{141, 50}, []int{bytes, lines})
	w.Limit(bytes, lines)
	require.False(t, w.Truncated(), "what is shown stays")
	w.Write([]byte("51\n"))
	require.True(t, w.Truncated())
	w.Limit(20, 4)
	b, l := w.Used()
	require.LessOrEqual(t, b, 20)
	require.LessOrEqual(t, l, 4)
	require.EqualValues(t, 144, w.Stats().TotalBytes)
	require.EqualValues(t, 51, w.Stats().TotalLines)
}

// TestFlagsPairFromTheBeginning: what is elided of a row of flags may be less than says how they pair.
func TestFlagsPairFromTheBeginning(t *testing.T) {
	t.Parallel()
	w := budget.New(budget.Options{Bytes: 8, Lines: 2, HeadBytes: 4})
	w.Write([]byte("🇳🇴🇳🇴"))
	_, _, tail := w.Parts()
	require.Empty(t, tail, "half of a flag is none")
}

// TestWindowIsHeadAndTailOfTheText draws a text, its cut into chunks, slots
// with updates and a budget, and compares with the whole text.
func TestWindowIsHeadAndTailOfTheText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o := budget.Options{
			Bytes: rapid.IntRange(1, 200).Draw(t, "bytes"), Lines: rapid.IntRange(1, 30).Draw(t, "lines"),
			HeadBytes: rapid.IntRange(0, 220).Draw(t, "head"), TailOnly: rapid.Bool().Draw(t, "tail only"),
		}
		w := budget.New(o)
		o = o.WithDefaults()
		var parts [][]byte
		type slot struct {
			*budget.Slot
			part int
		}
		var slots []slot
		text := func() []byte {
			return []byte(rapid.StringMatching(`([a-z]{0,9}\n?|é|😀\n|\n|e\x{301}|👩‍👩‍👧|🇳🇴|각){0,12}`).Draw(t, "text"))
		}
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1:
				s := text()
				w.Write(s)
				parts = append(parts, s)
			case 2:
				s := text()
				slots = append(slots, slot{w.Slot(s), len(parts)})
				parts = append(parts, s)
			case 3:
				if len(slots) > 0 {
					i := rapid.IntRange(0, len(slots)-1).Draw(t, "slot")
					if s := text(); slots[i].Set(s) {
						parts[slots[i].part] = s
					}
				}
			}
		}
		full := string(bytes.Join(parts, nil))
		got, stats := w.Text(), w.Stats()
		require.True(t, utf8.ValidString(got))
		require.EqualValues(t, len(full), stats.TotalBytes)
		require.EqualValues(t, lines(full), stats.TotalLines)
		require.Equal(t, w.Truncated(), stats.Truncated)
		if !stats.Truncated {
			require.Equal(t, full, got)
			require.EqualValues(t, len(full), stats.ShownBytes)
			require.EqualValues(t, lines(full), stats.ShownLines)
			require.LessOrEqual(t, len(full), o.Bytes)
			require.LessOrEqual(t, lines(full), o.Lines)
			return
		}
		head, marker, tail := w.Parts()
		require.Equal(t, got, head+marker+tail)
		require.Equal(t, head != "", marker != "")
		require.LessOrEqual(t, len(head)+len(tail), o.Bytes)
		require.True(t, strings.HasPrefix(full, head), "head %q of %q", head, full)
		require.True(t, strings.HasSuffix(full, tail), "tail %q of %q", tail, full)
		require.EqualValues(t, len(head)+len(tail), stats.ShownBytes)
		require.EqualValues(t, strings.Count(head, "\n"), stats.HeadLines)
		require.EqualValues(t, lines(tail), stats.TailLines)
		require.Equal(t, stats.HeadLines+stats.TailLines, stats.ShownLines)
		require.LessOrEqual(t, int(stats.ShownLines), o.Lines)
		borders := characters(full)
		require.Contains(t, borders, len(head), "head %q of %q", head, full)
		require.Contains(t, borders, len(full)-len(tail), "tail %q of %q", tail, full)
		elided := full[len(head) : len(full)-len(tail)]
		want := strings.Count(elided, "\n")
		if tail == "" {
			want = lines(elided)
		}
		require.EqualValues(t, want, stats.TotalLines-stats.ShownLines)
		require.Contains(t, []string{"bytes", "lines"}, stats.By)
	})
}

func lines(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}

func TestSize(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0B", 512: "512B", 51200: "50.0KB", 2411725: "2.3MB", 3 << 30: "3.0GB"} {
		require.Equal(t, want, budget.Size(n))
	}
}

func TestMemoryIsBounded(t *testing.T) { // not parallel: it counts allocations
	w := budget.New(budget.Options{})
	line := []byte(strings.Repeat("0123456789", 10) + "\n")
	step := func() {
		for range 1000 {
			w.Write(line)
		}
	}
	step()
	require.Less(t, testing.AllocsPerRun(5, step), 100.0, "buffers are used again")
	require.LessOrEqual(t, len(w.Text()), 51200+100)
}

func BenchmarkWrite(b *testing.B) {
	w := budget.New(budget.Options{})
	text := []byte(strings.Repeat(strings.Repeat("x", 79)+"\n", 100))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		w.Write(text)
	}
}
