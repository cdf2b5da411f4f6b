package page

import (
	"fmt"
	"html/template"
	"image/color"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-run/coppice/sinks/sanitise"
)

// maxParams is more than a sequence that sanitise lets pass has parameters.
const maxParams = 512

// maxMarks is how long a character with its marks is at most, in bytes.
const maxMarks = 64

// sgr is how text looks.
type sgr struct {
	bold, italic, under bool
	class, style        string
}

func (s sgr) open() string {
	var classes []string
	for _, c := range []struct {
		on   bool
		name string
	}{{s.bold, "b"}, {s.italic, "i"}, {s.under, "u"}, {s.class != "", s.class}} {
		if c.on {
			classes = append(classes, c.name)
		}
	}
	if len(classes) == 0 && s.style == "" {
		return ""
	}
	tag := "<span"
	if len(classes) > 0 {
		tag += ` class="` + strings.Join(classes, " ") + `"`
	}
	if s.style != "" {
		tag += ` style="color:` + s.style + `"`
	}
	return tag + ">"
}

// terminal turns text for a terminal into HTML as a terminal shows it: colours
// stay, and what a carriage return goes back over is overwritten.
func terminal(text string) template.HTML {
	filter := sanitise.Filter{Colour: true}
	text = string(filter.Close(filter.Append(nil, text)))
	p := painter{seq: ansi.NewParser()}
	p.seq.SetParamsSize(maxParams)
	p.b.WriteString("<pre>")
	first := true
	for line := range strings.SplitSeq(text, "\n") {
		if !first {
			p.paint(p.look, "\n")
		}
		first = false
		// Most lines only go forward.
		if line = strings.TrimRight(line, "\r"); strings.ContainsAny(line, "\r\b") || strings.Contains(line, "K") && strings.Contains(line, "\x1b") {
			p.redrawn(line)
		} else {
			p.forward(line)
		}
	}
	p.flush()
	p.b.WriteString("</pre>")
	return template.HTML(p.b.String()) //nolint:gosec // escaped in flush
}

// painter writes text in colours.
type painter struct {
	b    strings.Builder
	seq  *ansi.Parser
	look sgr // of what comes

	run     strings.Builder // text that looks alike
	runLook sgr
}

// paint writes text.
func (p *painter) paint(look sgr, text string) {
	if text == "" {
		return
	}
	if look != p.runLook {
		p.flush()
		p.runLook = look
	}
	p.run.WriteString(text)
}

func (p *painter) flush() {
	if p.run.Len() == 0 {
		return
	}
	tag := p.runLook.open()
	p.b.WriteString(tag + template.HTMLEscapeString(p.run.String()))
	if tag != "" {
		p.b.WriteString("</span>")
	}
	p.run.Reset()
}

// forward writes a line in which only colours change.
func (p *painter) forward(line string) {
	for line != "" {
		at := strings.IndexByte(line, ansi.ESC)
		if at < 0 {
			p.paint(p.look, line)
			return
		}
		p.paint(p.look, line[:at])
		_, _, n, _ := ansi.DecodeSequence(line[at:], ansi.NormalState, p.seq)
		p.look.apply(p.seq.Params())
		line = line[at+n:]
	}
}

// square is what stands in a column: "" when it is the right half of what is
// before it.
type square struct {
	text string
	look sgr
}

// redrawn writes a line that was written over, as a progress bar is.
func (p *painter) redrawn(line string) {
	var row []square
	at := 0
	for line != "" {
		text, width, n, _ := ansi.DecodeSequence(line, ansi.NormalState, p.seq)
		line = line[n:]
		switch {
		case text == "\r":
			at = 0
		case text == "\b":
			at = max(at-1, 0)
		case text == "\t" && at < sanitise.MaxRow:
			for stop := at/8*8 + 8; at < stop; at++ {
				row = place(row, at, square{" ", p.look})
			}
		case text[0] == ansi.ESC && ansi.Cmd(p.seq.Command()).Final() == 'm':
			p.look.apply(p.seq.Params())
		case text[0] == ansi.ESC:
			row = erase(row, at, p.seq.Params())
		case at >= sanitise.MaxRow: // the row ends here, as on a terminal that wide
			p.row(row)
			row, at = row[:0], 0
			line = text + line
		case width > 0:
			row = place(row, at, square{text, p.look})
			for i := 1; i < width; i++ {
				row = place(row, at+i, square{})
			}
			at += width
		case at > 0 && at <= len(row) && text[0] >= utf8.RuneSelf && len(row[at-1].text) < maxMarks: // a mark on what is before it
			row[at-1].text += text
		}
	}
	p.row(row)
}

// row writes what stands in columns.
func (p *painter) row(row []square) {
	for _, s := range row {
		p.paint(s.look, s.text)
	}
}

// place puts a square in a column; those before it exist.
func place(row []square, at int, s square) []square {
	for len(row) <= at {
		row = append(row, square{text: " "})
	}
	row[at] = s
	return row
}

// erase clears what EL says: from column at on, up to it, or all.
func erase(row []square, at int, params ansi.Params) []square {
	which, _, _ := params.Param(0, 0)
	switch which {
	case 0:
		return row[:min(at, len(row))]
	case 1:
		for i := range min(at+1, len(row)) {
			row[i] = square{text: " "}
		}
		return row
	default:
		return row[:0]
	}
}

// apply reads the parameters of a colour sequence.
func (s *sgr) apply(params ansi.Params) {
	if len(params) == 0 {
		*s = sgr{}
	}
	for i := 0; i < len(params); i++ {
		switch n := params[i].Param(0); {
		case n == 0:
			*s = sgr{}
		case n == 1:
			s.bold = true
		case n == 3:
			s.italic = true
		case n == 4:
			s.under = !params[i].HasMore() || i+1 < len(params) && params[i+1].Param(0) != 0
		case n == 22:
			s.bold = false
		case n == 23:
			s.italic = false
		case n == 24:
			s.under = false
		case n == 39:
			s.class, s.style = "", ""
		case n >= 30 && n <= 37:
			s.class, s.style = "f"+strconv.Itoa(n-30), ""
		case n >= 90 && n <= 97:
			s.class, s.style = "f"+strconv.Itoa(n-90), ""
		case n == 38 || n == 48 || n == 58:
			var c color.Color
			used := ansi.ReadStyleColor(params[i:], &c)
			if used == 0 {
				return // what follows cannot be told from its numbers
			}
			if n == 38 && c != nil {
				s.colour(c)
			}
			i += used - 1
			continue
		}
		for params[i].HasMore() && i+1 < len(params) {
			i++ // a style of what was read, as of an underline
		}
	}
}

// colour sets the colour of the text: the first sixteen are the page's.
func (s *sgr) colour(c color.Color) {
	switch c := c.(type) {
	case ansi.BasicColor:
		s.class, s.style = "f"+strconv.Itoa(int(c)%8), ""
	case ansi.IndexedColor:
		if c < 16 {
			s.class, s.style = "f"+strconv.Itoa(int(c)%8), ""
			return
		}
		s.rgb(c)
	default:
		s.rgb(c)
	}
}

func (s *sgr) rgb(c color.Color) {
	r, g, b, _ := c.RGBA()
	s.class, s.style = "", fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)
}
