package budget_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/sinks/budget"
)

// characters returns the places where what people see as one character begins
// or ends in s, found from its beginning.
func characters(s string) map[int]bool {
	places := map[int]bool{0: true}
	for at := 0; at < len(s); places[at] = true {
		c := graphemes.FromString(s[at:]).First()
		at += len(c)
	}
	return places
}

func TestFloor(t *testing.T) {
	t.Parallel()
	const family = "👩‍👩‍👧" // 18 bytes
	for name, tc := range map[string]struct {
		s        string
		at, want int
	}{
		"ascii":                  {"abc", 2, 2},
		"beyond":                 {"abc", 9, 3},
		"before":                 {"abc", -1, 0},
		"code point":             {"aé", 2, 1},
		"accent":                 {"ae\u0301b", 2, 1},
		"after the accent":       {"ae\u0301b", 4, 4},
		"family":                 {"a" + family + "b", 18, 1},
		"family, whole":          {"a" + family + "b", 19, 19},
		"second flag":            {"🇳🇴🇸🇪", 12, 8},
		"hangul":                 {"\u1100\u1161\u11a8", 6, 0},
		"skin":                   {"👍🏽", 4, 0},
		"crlf":                   {"a\r\nb", 2, 1},
		"a flood is cut":         {"a" + strings.Repeat("\u0301", 500), 500, 499},
		"a flood with a limit":   {"a" + strings.Repeat("\u0301", 30), 40, 0},
		"not UTF-8":              {"\xff\xff\xff", 2, 2},
		"only continuations":     {strings.Repeat("\x80", 700), 650, 650},
		"many flags, no letters": {"x" + strings.Repeat("🇳🇴", 30), 1 + 8*20 + 4, 1 + 8*20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.want, budget.Floor(tc.s, tc.at))
			require.Equal(t, tc.want, budget.Floor([]byte(tc.s), tc.at))
		})
	}
}

// clustered draws text whose characters have several code points each, and are
// not longer than MaxCluster.
func clustered() *rapid.Generator[string] {
	return rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{
		"a", "bc ", "é", "e\u0301", "n\u0303\u0323", "木", "\n", "🇳🇴", "👩‍👩‍👧", "👍🏽", "\u1100\u1161\u11a8", "क्षि", "❤️", "\u0301",
	}), 0, 40), func(p []string) string { return strings.Join(p, "") })
}

func TestFloorIsTheLastPlace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := clustered().Draw(t, "text")
		places := characters(s)
		last := 0
		for at := range len(s) + 1 {
			if places[at] {
				last = at
			}
			if at-last <= budget.MaxCluster {
				require.Equal(t, last, budget.Floor(s, at), "%q at %d", s, at)
			}
		}
	})
}

// TestColumnsCutNoCharacter: each line is the longest head of the line that fits,
// or all of it.
func TestColumnsCutNoCharacter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := clustered().Draw(t, "text")
		columns := rapid.IntRange(1, 60).Draw(t, "columns")
		w := window(budget.Options{Bytes: 1 << 20, Lines: 1 << 20, Columns: columns}, s)
		got := strings.Split(w.Text(), "\n")
		var lost int64
		for i, line := range strings.Split(s, "\n") {
			want := line
			if len(line) > columns {
				n := budget.Floor(line, columns)
				require.True(t, characters(line)[n])
				want = line[:n] + "…"
				lost += int64(len(line) - n)
			}
			require.Equal(t, want, got[i])
		}
		require.Equal(t, lost, w.Stats().CutBytes)
	})
}

// hostileTexts are made to be slow, or to fill memory.
var hostileTexts = map[string]string{
	"accents":        "a" + strings.Repeat("\u0301", 1<<12),
	"joiners":        strings.Repeat("👩\u200d", 1<<11),
	"flags":          strings.Repeat("🇳", 1<<12),
	"jamo":           strings.Repeat("\u1100", 1<<12),
	"prepended":      strings.Repeat("\u0600", 1<<12),
	"not UTF-8":      strings.Repeat("\x80", 1<<13),
	"newlines":       strings.Repeat("\n", 1<<13),
	"returns":        strings.Repeat("\r", 1<<13),
	"one long line":  strings.Repeat("x", 1<<13),
	"ordinary lines": strings.Repeat(strings.Repeat("x", 79)+"\n", 100),
}

// TestHostileText holds the budget, and that nothing is lost from the counts.
func TestHostileText(t *testing.T) {
	t.Parallel()
	for name, text := range hostileTexts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := budget.New(budget.Options{Bytes: 4000, Lines: 100})
			for range 20 {
				w.Write([]byte(text))
			}
			head, _, tail := w.Parts()
			s := w.Stats()
			require.EqualValues(t, 20*len(text), s.TotalBytes)
			require.EqualValues(t, len(head)+len(tail), s.ShownBytes)
			require.LessOrEqual(t, s.ShownBytes, int64(4000))
			if !utf8.ValidString(text) {
				return // each chunk ends with a whole character, says the contract
			}
			require.True(t, utf8.ValidString(head+tail))
			if !strings.Contains(text, "\n") {
				require.GreaterOrEqual(t, s.ShownBytes, int64(4000-4*budget.MaxCluster), "a flood does not empty the text")
			}
		})
	}
}

// BenchmarkHostile: bytes a second must not depend on how much was written, nor
// much on what.
func BenchmarkHostile(b *testing.B) {
	for name, text := range hostileTexts {
		for _, columns := range []int{0, 768} {
			kind := "/whole"
			if columns > 0 {
				kind = "/columns"
			}
			b.Run(name+kind, func(b *testing.B) {
				w := budget.New(budget.Options{Columns: columns})
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					w.Write([]byte(text))
				}
				w.Stats()
			})
		}
	}
}
