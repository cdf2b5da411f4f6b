package render

import (
	"strings"

	"github.com/alecthomas/chroma/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-run/coppice/internal/highlight"
	"github.com/coppice-run/coppice/sinks/sanitise"
)

const magenta paint = "35"

// Code colours Python. The colours are those that the terminal's own theme
// gives the names, so that they can be read on light and on dark ground. Lines
// stay lines; control characters are taken out and tabs become spaces.
func Code(s Style, code string) string {
	code = strings.ReplaceAll(sanitise.Clean(code), "\t", "    ")
	if !s.Colour || code == "" {
		return code
	}
	python, err := highlight.Python()
	if err != nil {
		return code
	}
	tokens, err := python.Tokenise(&chroma.TokeniseOptions{State: "root", EnsureLF: false}, code)
	if err != nil {
		return code
	}
	var b strings.Builder
	for t := tokens(); t != chroma.EOF; t = tokens() {
		p := colourOf(t.Type)
		for i, line := range strings.Split(t.Value, "\n") {
			if i > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(s.in(p, line))
		}
	}
	return b.String()
}

func colourOf(t chroma.TokenType) paint {
	switch {
	case t.InCategory(chroma.Comment):
		return dim
	case t.InSubCategory(chroma.LiteralString):
		return green
	case t.InSubCategory(chroma.LiteralNumber):
		return cyan
	case t == chroma.OperatorWord, t.InCategory(chroma.Keyword):
		return magenta
	case t == chroma.NameFunction, t == chroma.NameClass, t == chroma.NameDecorator, t == chroma.NameFunctionMagic:
		return blue
	case t == chroma.NameBuiltin, t == chroma.NameBuiltinPseudo, t == chroma.NameException:
		return yellow
	default:
		return ""
	}
}

// ClampWidth is how many columns of a line are shown.
const ClampWidth = 4000

// Clamp cuts lines that are very long, and says how much is missing.
func Clamp(s Style, lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		if w := ansi.StringWidth(l); w > ClampWidth {
			l = ansi.Truncate(l, ClampWidth, "") + s.in(dim, "… ["+Number(w-ClampWidth, "column")+" omitted]")
		}
		out[i] = l
	}
	return out
}

// Collapse keeps the last lines of many, as wide as the style, under a line that
// says how many are not shown. hint says how to see them; "" says nothing.
func Collapse(s Style, lines []string, most int, hint string) []string {
	var out []string
	if cut := len(lines) - most; cut > 0 {
		about := "… " + Number(cut, "more line")
		if hint != "" {
			about += " (" + hint + ")"
		}
		out = append(out, s.Fit(s.in(dim, about)))
		lines = lines[cut:]
	}
	for _, l := range lines {
		out = append(out, s.Fit(l))
	}
	return out
}

// Columns sets words in columns, one below the other, as many as fit.
func Columns(s Style, words []string) []string {
	widest := 0
	for _, w := range words {
		widest = max(widest, ansi.StringWidth(w))
	}
	columns := max(1, s.Width/(widest+2))
	rows := (len(words) + columns - 1) / columns
	lines := make([]string, rows)
	for i, w := range words {
		if i+rows < len(words) {
			w = pad(w, widest+2)
		}
		lines[i%rows] += w
	}
	return lines
}
