package sanitise_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/sinks/sanitise"
)

// screenText is what a screen shows after one stream wrote chunks.
func screenText(chunks ...string) string {
	var s sanitise.Screen
	var out strings.Builder
	for _, c := range chunks {
		s.Write(sanitise.Out, c)
		out.Write(s.Take())
	}
	s.Close()
	out.Write(s.Take())
	return out.String()
}

func TestClean(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ in, want string }{
		"empty":                        {"", ""},
		"plain":                        {"a b\tc\n", "a b\tc\n"},
		"crlf":                         {"a\r\nb\r\n", "a\nb\n"},
		"colour":                       {"\x1b[31mred\x1b[0m\n", "red\n"},
		"colour with sub-parameters":   {"\x1b[38:2::1:2:3mx", "x"},
		"osc title, bel":               {"\x1b]0;title\x07x", "x"},
		"osc link, st":                 {"\x1b]8;;http://h/\x1b\\link\x1b]8;;\x1b\\", "link"},
		"osc ended by one character":   {"\x1b]0;t\u009cx", "x"},
		"osc cut by newline is text":   {"\x1b]not\x01 one\nb", "]not one\nb"},
		"osc cut by the end is text":   {"\x1b]not one", "]not one"},
		"osc with half a character":    {"\x1b]\xe2\nb", "]\uFFFD\nb"},
		"dcs spans lines":              {"a\x1bPq#0\n;1\n\x1b\\b", "ab"},
		"dcs is not ended by bel":      {"\x1bPa\x07b\x1b\\c", "c"},
		"sos, pm, apc":                 {"\x1bXa\x1b\\1\x1b^b\x1b\\2\x1b_c\x1b\\3", "123"},
		"string given up by can":       {"\x1b]0;t\x18x", "x"},
		"string ended by another":      {"\x1b]0;t\x1b[1mx", "x"},
		"escape in string escape":      {"\x1bPa\x1b\x1b\\b", "b"},
		"two-byte escapes":             {"\x1b7a\x1b8\x1bcb\x1b(B\x1b#8c", "abc"},
		"too many intermediates":       {"\x1b       x", "  x"},
		"escape before newline":        {"a\x1b\nb", "a\nb"},
		"escape before text":           {"\x1bé", "é"},
		"csi cut by newline":           {"\x1b[3\nx", "\nx"},
		"csi cut by a character":       {"\x1b[3é", "é"},
		"csi cut by escape":            {"\x1b[3\x1b[1mx", "x"},
		"csi given up by sub":          {"\x1b[3\x1ax", "x"},
		"csi cut by the end":           {"x\x1b[31", "x"},
		"csi that is too long":         {"\x1b[" + strings.Repeat("1", 300) + "m", strings.Repeat("1", 44) + "m"},
		"private csi":                  {"\x1b[?25lx\x1b[>4;1m", "x"},
		"c0":                           {"a\x00\x01\x07\x0b\x0c\x0e\x1fb", "ab"},
		"del":                          {"a\x7fb", "ab"},
		"c1":                           {"a\u0080\u0085\u009b31mb", "a31mb"},
		"invalid bytes":                {"a\xff\xfeb", "a\uFFFD\uFFFDb"},
		"cut character":                {"a\xe2\x82", "a\uFFFD\uFFFD"},
		"cut character before text":    {"\xe2\x82x", "\uFFFD\uFFFDx"},
		"lone surrogate":               {"\xed\xa0\x80", "\uFFFD\uFFFD\uFFFD"},
		"overlong":                     {"\xc0\xaf", "\uFFFD\uFFFD"},
		"replacement stays":            {"\uFFFD", "\uFFFD"},
		"bidi and joiners stay":        {"a\u200db\u202e", "a\u200db\u202e"},
		"carriage return":              {"10%\r20%\r100%\n", "100%\n"},
		"shorter over longer":          {"loading 100\rdone\n", "doneing 100\n"},
		"erase to the end":             {"loading 100\rdone\x1b[K\n", "done\n"},
		"erase, then text":             {"loading\r\x1b[Kdone\n", "done\n"},
		"erase the row":                {"loading\x1b[2K\rdone\n", "done\n"},
		"erase the row, cursor stays":  {"ab\x1b[2Kc\n", "  c\n"},
		"erase below":                  {"loading\rx\x1b[J\n", "x\n"},
		"erase before is not followed": {"ab\x1b[1Kc\n", "abc\n"},
		"cleared with blanks":          {"50%|#####|\r          \rdone\n", "done\n"},
		"cleared for good":             {"50%|#####|\r          \r", ""},
		"return without text":          {"abc\r", "abc"},
		"trailing blanks kept":         {"a  \nb  ", "a  \nb  "},
		"spinner":                      {"|\b/\b-\b\\\bdone\n", "done\n"},
		"rub out":                      {"abc\b \b\b \b\n", "a\n"},
		"backspace at the start":       {"\b\b\ba\n", "a\n"},
		"backspace after return":       {"abc\r\bx\n", "xbc\n"},
		"backspace over a wide one":    {"你\bx\n", " x\n"},
		"overwrite left half":          {"你好\rx\n", "x 好\n"},
		"wide over narrow":             {"abcd\r你\n", "你cd\n"},
		"combining mark stays":         {"e\u0301x\ry\n", "yx\n"},
		"combining mark joins":         {"ab\re\u0301\n", "e\u0301b\n"},
		"mark at the start of a grid":  {"ab\r\u0301\n", "ab\n"},
		"tab moves over":               {"abcdefghij\r\tX\n", "abcdefghXj\n"},
		"tab is kept":                  {"ab\rxy\tz\n", "xy\tz\n"},
		"tab is overwritten":           {"a\tb\rxyz\n", "xyz     b\n"},
		"column":                       {"abc\x1b[1GX\x1b[5GY\n", "Xbc Y\n"},
		"forward and back":             {"abc\x1b[2DX\x1b[CY\n", "aXcY\n"},
		"far column is not believed":   {"\x1b[4000Gx\n", strings.Repeat(" ", 256) + "x\n"},
		"row of blanks":                {"a\r \n", "\n"},
		"malformed parameters":         {"ab\x1b[1;2GX\n", "abX\n"},
		"cursor up is removed":         {"a\nb\x1b[1A\x1b[2Kc\n", "a\n c\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.want, sanitise.Clean(tc.in))
			require.Equal(t, tc.want, screenText(tc.in), "streamed at once")
			require.Equal(t, tc.want, screenText(strings.Split(tc.in, "")...), "streamed by characters")
			var bytes []string
			for i := range len(tc.in) {
				bytes = append(bytes, tc.in[i:i+1])
			}
			require.Equal(t, tc.want, screenText(bytes...), "streamed by bytes")
		})
	}
}

func TestFilter(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ in, mono, colour string }{
		"colour":           {"\x1b[31mred\x1b[0m\n", "red\n", "\x1b[31mred\x1b[0m\n"},
		"left on":          {"\x1b[1;31mred\n", "red\n", "\x1b[1;31mred\n\x1b[0m"},
		"reset without 0":  {"\x1b[1mx\x1b[m", "x", "\x1b[1mx\x1b[m"},
		"progress":         {"1%\r2%\b\x1b[K", "1%\r2%\b", "1%\r2%\b\x1b[K"},
		"title":            {"\x1b]0;evil\x07x", "x", "x"},
		"clipboard":        {"\x1b]52;c;ZXZpbA==\x07x", "x", "x"},
		"answers":          {"\x1b[6n\x1b[c\x1b]10;?\x07x", "x", "x"},
		"screen":           {"\x1b[2J\x1b[H\x1b[?1049h\x1bcx", "x", "x"},
		"keyboard mode":    {"\x1b[>4;2mx", "x", "x"},
		"intermediate":     {"\x1b[1 mx", "x", "x"},
		"bell":             {"\ax", "x", "x"},
		"8-bit introducer": {"\u009b2Jx", "2Jx", "2Jx"},
		"unfinished":       {"x\x1b]0;t", "x]0;t", "x]0;t"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, v := range []struct {
				colour bool
				want   string
			}{{false, tc.mono}, {true, tc.colour}} {
				f := sanitise.Filter{Colour: v.colour}
				var out []byte
				for i := range len(tc.in) {
					out = f.Append(out, tc.in[i:i+1])
				}
				require.Equal(t, v.want, string(f.Close(out)), "colour %v", v.colour)
			}
		})
	}
}

func TestStreamsShareTheRow(t *testing.T) {
	t.Parallel()
	var s sanitise.Screen
	s.Write(sanitise.Err, "\r 50%\x1b[3") // a sequence that stdout must not end
	s.Write(sanitise.Out, "1mhello")
	s.Write(sanitise.Err, "1m\n")
	s.Close()
	require.Equal(t, " 50%1mhello\n", string(s.Take()))
}

func TestScreenRows(t *testing.T) {
	t.Parallel()
	var s sanitise.Screen
	s.Write(sanitise.Out, "a\nb\rc")
	require.Equal(t, "a\n", string(s.Take()))
	require.Equal(t, "c", s.Row())
	s.Break()
	require.Equal(t, "c\n", string(s.Take()))
	s.Break()
	require.Empty(t, string(s.Take()), "an empty row is not ended")
	s.Write(sanitise.Out, "x\n y\r  ")
	s.Break()
	require.Equal(t, "x\n", string(s.Take()), "nor is one that shows nothing")
	s.Write(sanitise.Out, "gone\nrow")
	s.Clear()
	s.Write(sanitise.Out, "new")
	s.Close()
	require.Equal(t, "new", string(s.Take()))
}

// TestLongRow holds that a line longer than a row keeps all its text, and that
// only the last row of it can be overwritten.
func TestLongRow(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 3*sanitise.MaxRow)
	require.Equal(t, long+"\n", screenText(long, "\n"))

	line := strings.Repeat("a", sanitise.MaxRow) + strings.Repeat("b", 10)
	require.Equal(t, strings.Repeat("a", sanitise.MaxRow)+"Xbbbbbbbbb", screenText(line, "\rX"))

	tabs := strings.Repeat("\t", sanitise.MaxRow)
	require.Equal(t, tabs, screenText(tabs))
	require.Equal(t, "x       "+tabs[1:], screenText(tabs, "\rx"), "no tab is lost when the row becomes a grid")
	require.Equal(t, "xx      \t\ty", screenText("\t\t\t\rxx", "\x1b[25Gy"))

	grid := "a\r" + strings.Repeat("b", sanitise.MaxRow+5)
	require.Equal(t, strings.Repeat("b", sanitise.MaxRow+5), screenText(grid))
}

// hostile generates byte streams made of the pieces that matter.
func hostile() *rapid.Generator[string] {
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{
			"\x1b", "[", "]", "P", "X", "^", "_", "\\", "\x07", "\x18", "\x1a", "\x9c", "\xc2", "\u009c", "\u009b", ";", ":", "?", "0", "1", "31", "m", "K", "G", "C", "D", "J",
			"\n", "\r", "\b", "\t", " ", "a", "bc", "你", "é", "e\u0301", "\u200d", "\xe2", "\x82", "\xac", "\xed\xa0\x80", "\xff", "\xf0\x9f", "\x7f", "\x00",
			"\x1b[2K", "\x1b[K", "\x1b[40G", "\x1b[3D", "\x1b]0;t\x07", "\x1bPq\n\x1b\\",
		}),
		rapid.StringN(0, 4, 8),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 4), func(b []byte) string { return string(b) }),
		rapid.Map(rapid.IntRange(sanitise.MaxRow-3, sanitise.MaxRow+3), func(n int) string { return strings.Repeat("x", n) }),
	)
	return rapid.Map(rapid.SliceOfN(piece, 0, 40), func(p []string) string { return strings.Join(p, "") })
}

// cut splits s at the drawn places.
func cut(t *rapid.T, s string) []string {
	var chunks []string
	for len(s) > 0 {
		n := rapid.IntRange(1, min(len(s), 1+rapid.SampledFrom([]int{0, 2, 10, 5000}).Draw(t, "most"))).Draw(t, "n")
		chunks, s = append(chunks, s[:n]), s[n:]
	}
	return chunks
}

func TestAnySplitGivesTheSameText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := hostile().Draw(t, "stream")
		chunks := cut(t, s)
		want := screenText(s)
		require.Equal(t, want, screenText(chunks...))
		checkText(t, want)
		require.Equal(t, want, sanitise.Clean(want), "clean text is left alone")

		whole := sanitise.Filter{Colour: true}
		parts := sanitise.Filter{Colour: true}
		var out []byte
		for _, c := range chunks {
			out = parts.Append(out, c)
		}
		require.Equal(t, string(whole.Close(whole.Append(nil, s))), string(parts.Close(out)))
	})
}

func checkText(t require.TestingT, s string) {
	require.True(t, utf8.ValidString(s))
	for _, r := range s {
		require.False(t, r != '\n' && r != '\t' && (r < 0x20 || r >= 0x7f && r <= 0x9f), "control %U", r)
	}
}

// TestPlainTextPasses holds that printable text is not changed at all, and that
// as many lines come out as went in.
func TestPlainTextPasses(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`([a-zA-Z0-9 \t\n.,é你😀]|e\x{301}){0,80}`).Draw(t, "text")
		require.Equal(t, s, screenText(cut(t, s)...))
	})
}

// TestMemoryIsBounded feeds endless sequences and rows and looks at what is
// taken between: it is never more than the chunk and a row.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	for name, chunk := range map[string]string{
		"row":     strings.Repeat("x", 1000),
		"tabs":    strings.Repeat("\t", 1000),
		"grid":    "\r" + strings.Repeat("y", 1000) + "\b",
		"marks":   "a\rb" + strings.Repeat("\u0301", 500),
		"jumps":   strings.Repeat("\x1b[4000C", 100) + "x\r",
		"csi":     strings.Repeat("1", 1000),
		"strings": strings.Repeat("z", 1000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s sanitise.Screen
			switch name {
			case "csi":
				s.Write(sanitise.Out, "\x1b[")
			case "strings":
				s.Write(sanitise.Out, "\x1bP")
			}
			for range 2000 {
				s.Write(sanitise.Out, chunk)
				require.LessOrEqual(t, len(s.Take()), len(chunk)+8*sanitise.MaxRow)
				require.LessOrEqual(t, s.Footprint(), 2<<20)
			}
		})
	}
}

func FuzzScreen(f *testing.F) {
	for _, s := range []string{"", "a\r\nb", "\x1b[31mred\x1b[0m", "\x1b]0;t\x07x", "\x1bPq\n\x1b\\", "50%\r\x1b[K100%\n", "你\b\bx", "\xed\xa0\x80", "\x1b]\xe2\n"} {
		f.Add(s, uint16(1))
	}
	f.Fuzz(func(t *testing.T, s string, at uint16) {
		want := screenText(s)
		checkText(t, want)
		i := min(int(at), len(s))
		require.Equal(t, want, screenText(s[:i], s[i:]))
		require.Equal(t, want, sanitise.Clean(s))
	})
}

func BenchmarkScreen(b *testing.B) {
	for name, line := range map[string]string{
		"plain":    strings.Repeat("the quick brown fox jumps over the lazy dog ", 2) + "\n",
		"colour":   "\x1b[32mINFO\x1b[0m the quick brown fox \x1b[1mjumps\x1b[0m over the lazy dog\n",
		"utf8":     strings.Repeat("быстрая лиса 速い狐 ", 4) + "\n",
		"progress": "\r 42%|████████▌           | 42/100 [00:04<00:05, 10.0it/s]",
	} {
		b.Run(name, func(b *testing.B) {
			chunk := strings.Repeat(line, 8<<10/len(line))
			var s sanitise.Screen
			b.SetBytes(int64(len(chunk)))
			b.ReportAllocs()
			for b.Loop() {
				s.Write(sanitise.Out, chunk)
				s.Take()
			}
		})
	}
}
