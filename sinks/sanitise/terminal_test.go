package sanitise

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTerminal lets colours, erasure and pictures pass and nothing else that a
// terminal obeys.
func TestTerminal(t *testing.T) {
	t.Parallel()
	kitty := "\x1b_Ga=T,f=100,q=2,m=1;QUJD\x1b\\\x1b_Gm=0;REVG\x1b\\"
	iterm := "\x1b]1337;File=size=3;inline=1:QUJD\x07"
	sixel := "\x1bP0;1;0q\"1;1;2;2#0;2;0;0;0#0~~$-\x1b\\"
	for text, want := range map[string]string{
		"plain\ttext\n":                   "plain\ttext\n",
		"a\x1b]52;c;RVZJTA==\x07b":        "ab",
		"a\x1b]0;T\x07b\x1b[2Jc\x1b[6n":   "abc",
		"over\rwritten\b\b":               "overwritten",
		"\x1b[31mred\x1b[0m":              "\x1b[31mred\x1b[0m",
		"\x1b[1;31mred":                   "\x1b[1;31mred\x1b[0m",
		"\x1b[8mhidden\x1b[0m":            "hidden\x1b[0m",
		"\x1b[1;08;31mx\x1b[m":            "\x1b[1;31mx\x1b[m",
		"\x1b[38;5;8mgrey\x1b[m":          "\x1b[38;5;8mgrey\x1b[m",
		"\x1b[38;2;8;8;8;8mgrey\x1b[m":    "\x1b[38;2;8;8;8mgrey\x1b[m",
		"\x1b[8:1mx":                      "x",
		"\x1b[>4;1mx\x1b[?25l":            "x",
		"line\x1b[K":                      "line\x1b[K",
		"line\x1b[1;1K":                   "line",
		"ex\u202egpj.py\u202c \u2066i":    "exgpj.py i",
		"שלום\u200f!":                     "שלום\u200f!",
		"\u009b31mx\u0085y\x7fz\x00":      "31mxyz",
		"bad \xff utf-8 \xe2\x82":         "bad � utf-8 ��",
		kitty:                             kitty,
		iterm:                             iterm,
		sixel:                             sixel,
		"a" + kitty + "b":                 "a" + kitty + "b",
		"\x1b_Ga=T,t=f;L2V0Yw==\x1b\\":    "", // would read a file
		"\x1b_Ga=q,i=1;AAAA\x1b\\":        "", // would be answered
		"\x1b]1337;File=name=eA==:QQ==\a": "", // would be saved
		"\x1b]1337;SetMark\x07":           "",
		"\x1bP$q\"p\x1b\\":                "", // would be answered
		"open \x1b]0;no end":              "open ]0;no end",
	} {
		require.Equal(t, want, ForTerminal(text), "%q", text)
	}
	drawing := Terminal{Returns: true}
	require.Equal(t, "10%\r20%\b", string(drawing.Append(nil, "10%\r20%\b")))
}

// TestTerminalChunks gives the same for a text however it is cut.
func TestTerminalChunks(t *testing.T) {
	t.Parallel()
	text := "a\x1b[1;8;31mä€\x1b[K\u202e b\x1b]0;t\x07\r\n\x1b[38;5;8mx"
	for at := range len(text) {
		var whole Terminal
		got := whole.Append(nil, text[:at])
		got = whole.Close(whole.Append(got, text[at:]))
		require.Equal(t, ForTerminal(text), string(got), at)
	}
}

// FuzzTerminal lets nothing pass that a terminal obeys but colours, erasure and
// pictures, and lets what has passed pass as it is.
func FuzzTerminal(f *testing.F) {
	f.Add("a\x1b[31mb\x1b]52;c;x\x07\u202e\x1b_Gm=0;QQ==\x1b\\")
	f.Add("\x1b\x1b[8;8m\x1bP0q~\x1b\\")
	f.Fuzz(func(t *testing.T, text string) {
		out := ForTerminal(text)
		require.Equal(t, out, ForTerminal(out))
		require.True(t, harmless(out), "%q gives %q", text, out)
	})
}

// harmless reports whether text holds nothing that a terminal obeys but colours, EL and
// pictures, found in another way than Terminal does.
func harmless(text string) bool {
	for text != "" {
		if size, is := Picture(text); is {
			text = text[size:]
			continue
		}
		if rest, is := strings.CutPrefix(text, "\x1b["); is {
			end := strings.TrimLeft(rest, "0123456789;:")
			if end == "" || end[0] != 'm' && end[0] != 'K' {
				return false
			}
			text = end[1:]
			continue
		}
		for i, r := range text {
			if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r <= 0x9f || overrides(r) {
				return r == esc && i > 0 && harmless(text[i:])
			}
		}
		return true
	}
	return true
}
