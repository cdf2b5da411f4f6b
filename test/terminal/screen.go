package terminal

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// Cell is one place of a screen. The right half of a wide character has no text.
type Cell struct {
	Text string `json:"text"`
	// Ink and Ground are SGR parameters (31, "38;2;1;2;3"), "" for the default.
	Ink    string `json:"ink,omitempty"`
	Ground string `json:"ground,omitempty"`
	Bold   bool   `json:"bold,omitempty"`
	Dim    bool   `json:"dim,omitempty"`
}

// Screen is what a terminal shows: rows of cells and a cursor. What it does not
// know is kept in Unknown, so that a test can see that its picture is not whole.
// The zero value has no size; make one with [NewScreen].
type Screen struct {
	Unknown []string

	width, height int
	rows          [][]Cell
	x, y          int
	wrap          bool // the next character begins a row
	top, bottom   int  // of the region that scrolls
	pen           Cell
	pending       string // the beginning of a sequence or a character
	saved         [2]int
	last          string // the character that can be repeated
}

// NewScreen returns an empty screen.
func NewScreen(width, height int) *Screen {
	s := &Screen{width: width, height: height, bottom: height - 1}
	for range height {
		s.rows = append(s.rows, s.blank())
	}
	return s
}

func (s *Screen) blank() []Cell { return slices.Repeat([]Cell{{Text: " "}}, s.width) }

// Cells returns a copy of the rows.
func (s *Screen) Cells() [][]Cell {
	out := make([][]Cell, len(s.rows))
	for i, r := range s.rows {
		out[i] = slices.Clone(r)
	}
	return out
}

// Text returns the rows without blanks at their ends, each with a newline.
func (s *Screen) Text() string {
	var b strings.Builder
	for _, r := range s.rows {
		var line strings.Builder
		for _, c := range r {
			line.WriteString(c.Text)
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

// Write shows what a program writes.
func (s *Screen) Write(p []byte) (int, error) {
	s.pending += string(p)
	for s.pending != "" {
		n := s.step(s.pending)
		if n == 0 {
			break
		}
		s.pending = s.pending[n:]
	}
	return len(p), nil
}

// step handles what text begins with and returns its length, 0 when more is
// needed to know.
func (s *Screen) step(text string) int {
	switch c := text[0]; {
	case c == 0x1b:
		return s.escape(text)
	case c < 0x20 || c == 0x7f:
		s.control(c)
		return 1
	case c < utf8.RuneSelf:
		s.put(text[:1], 1)
		return 1
	case !utf8.FullRuneInString(text):
		return 0
	default:
		_, n := utf8.DecodeRuneInString(text)
		s.put(text[:n], ansi.StringWidth(text[:n]))
		return n
	}
}

// put shows one character.
func (s *Screen) put(text string, width int) {
	if width == 0 { // it joins the one before
		if x := s.x - 1; x >= 0 {
			for x > 0 && s.rows[s.y][x].Text == "" {
				x--
			}
			s.rows[s.y][x].Text += text
		}
		return
	}
	if s.wrap || s.x+width > s.width {
		s.x, s.wrap = 0, false
		s.down()
	}
	s.last = text
	row := s.rows[s.y]
	if s.x > 0 && row[s.x].Text == "" { // the left half of what was wide goes too
		row[s.x-1].Text = " "
	}
	if end := s.x + width; end < s.width && row[end].Text == "" {
		row[end].Text = " "
	}
	for i := range width {
		c := s.pen
		if c.Text = ""; i == 0 {
			c.Text = text
		}
		row[s.x+i] = c
	}
	if s.x += width; s.x >= s.width {
		s.x, s.wrap = s.width-1, true
	}
}

func (s *Screen) control(c byte) {
	switch c {
	case '\n', '\v', '\f':
		s.wrap = false
		s.down()
	case '\r':
		s.x, s.wrap = 0, false
	case '\b':
		s.x, s.wrap = max(0, s.x-1), false
	case '\t':
		s.x = min(s.width-1, s.x/8*8+8)
	default:
	}
}

// down moves the cursor down; at the end of the region that scrolls, it scrolls.
func (s *Screen) down() {
	if s.y == s.bottom {
		s.scroll(s.top, 1)
		return
	}
	s.y = min(s.height-1, s.y+1)
}

// scroll moves the rows from first to the end of the region up by n, or down.
func (s *Screen) scroll(first, n int) {
	for range min(max(n, -n), s.height) {
		if n > 0 {
			s.rows = slices.Insert(slices.Delete(s.rows, first, first+1), s.bottom, s.blank())
		} else {
			s.rows = slices.Insert(slices.Delete(s.rows, s.bottom, s.bottom+1), first, s.blank())
		}
	}
}

// escape handles a sequence.
func (s *Screen) escape(text string) int {
	if len(text) < 2 {
		return 0
	}
	switch c := text[1]; c {
	case '[':
		for i := 2; i < len(text); i++ {
			if text[i] >= 0x40 && text[i] <= 0x7e {
				s.csi(text[2:i], text[i])
				return i + 1
			}
		}
		return 0
	case ']', 'P', '_', '^', 'X': // titles, colours, graphics: nothing that a text shows
		end := strings.Index(text, "\x1b\\")
		if bell := strings.IndexByte(text, '\a'); c == ']' && bell >= 0 && (end < 0 || bell < end) {
			return bell + 1
		}
		if end < 0 {
			return 0
		}
		return end + 2
	case '(', ')', '#', ' ':
		if len(text) < 3 {
			return 0
		}
		return 3
	case '7':
		s.saved = [2]int{s.x, s.y}
	case '8':
		s.x, s.y, s.wrap = s.saved[0], s.saved[1], false
	case 'M':
		if s.y == s.top {
			s.scroll(s.top, -1)
		} else {
			s.y = max(0, s.y-1)
		}
	case '=', '>', 'c':
	default:
		s.Unknown = append(s.Unknown, text[:2])
	}
	return 2
}

// csi handles a control sequence.
func (s *Screen) csi(parameters string, final byte) {
	if strings.ContainsAny(parameters, "?<>=$ !\"'") { // modes and questions
		return
	}
	var list []int
	for p := range strings.SplitSeq(parameters, ";") {
		n, err := strconv.Atoi(p)
		if err != nil {
			n = 0
		}
		list = append(list, n)
	}
	at := func(i, otherwise int) int {
		if i < len(list) && list[i] > 0 {
			return list[i]
		}
		return otherwise
	}
	n := at(0, 1)
	if final != 'm' && final != 'b' {
		s.wrap = false
	}
	switch final {
	case 'm':
		s.paint(parameters)
	case 'A':
		s.y = max(0, s.y-n)
	case 'B', 'e':
		s.y = min(s.height-1, s.y+n)
	case 'C', 'a':
		s.x = min(s.width-1, s.x+n)
	case 'D':
		s.x = max(0, s.x-n)
	case 'E', 'F':
		s.x = 0
		if final == 'F' {
			n = -n
		}
		s.y = min(max(s.y+n, 0), s.height-1)
	case 'G', '`':
		s.x = min(n, s.width) - 1
	case 'd':
		s.y = min(n, s.height) - 1
	case 'H', 'f':
		s.y, s.x = min(n, s.height)-1, min(at(1, 1), s.width)-1
	case 'J':
		s.eraseScreen(at(0, 0))
	case 'K':
		s.eraseRow(at(0, 0))
	case 'X':
		s.erase(s.y, s.x, s.x+n)
	case 'P':
		row := slices.Delete(s.rows[s.y], s.x, min(s.x+n, s.width))
		s.rows[s.y] = append(row, s.blank()[:s.width-len(row)]...)
	case '@':
		s.rows[s.y] = slices.Insert(s.rows[s.y], s.x, s.blank()[:min(n, s.width-s.x)]...)[:s.width]
	case 'L':
		s.scroll(s.y, -n)
	case 'M':
		s.scroll(s.y, n)
	case 'S':
		s.scroll(s.top, n)
	case 'T':
		s.scroll(s.top, -n)
	case 'I':
		s.x = min(s.width-1, (s.x/8+n)*8)
	case 'Z':
		s.x = max(0, ((s.x+7)/8-n)*8)
	case 'b':
		for range n {
			s.put(s.last, max(1, ansi.StringWidth(s.last)))
		}
	case 'r':
		s.top, s.bottom = at(0, 1)-1, at(1, s.height)-1
		s.x, s.y = 0, 0
	case 's':
		s.saved = [2]int{s.x, s.y}
	case 'u':
		s.x, s.y = s.saved[0], s.saved[1]
	case 'n', 'c', 't', 'h', 'l', 'g':
	default:
		s.Unknown = append(s.Unknown, "CSI "+parameters+string(final))
	}
}

func (s *Screen) erase(y, from, to int) {
	for x := from; x < min(to, s.width); x++ {
		s.rows[y][x] = Cell{Text: " ", Ground: s.pen.Ground}
	}
}

func (s *Screen) eraseRow(how int) {
	switch how {
	case 0:
		s.erase(s.y, s.x, s.width)
	case 1:
		s.erase(s.y, 0, s.x+1)
	default:
		s.erase(s.y, 0, s.width)
	}
}

func (s *Screen) eraseScreen(how int) {
	first, last := 0, s.height
	switch how {
	case 0:
		s.eraseRow(0)
		first = s.y + 1
	case 1:
		s.eraseRow(1)
		last = s.y
	default:
	}
	for y := first; y < last; y++ {
		s.erase(y, 0, s.width)
	}
}

// paint follows an SGR sequence.
func (s *Screen) paint(parameters string) {
	list := strings.Split(strings.ReplaceAll(parameters, ":", ";"), ";")
	for i := 0; i < len(list); i++ {
		n, err := strconv.Atoi(list[i])
		if err != nil {
			n = 0
		}
		switch {
		case n == 0:
			s.pen = Cell{}
		case n == 1:
			s.pen.Bold = true
		case n == 2:
			s.pen.Dim = true
		case n == 22:
			s.pen.Bold, s.pen.Dim = false, false
		case n == 38 || n == 48:
			length := 5 // 38;2;r;g;b
			if i+1 < len(list) && list[i+1] == "5" {
				length = 3
			}
			colour := strings.Join(list[i:min(i+length, len(list))], ";")
			if n == 38 {
				s.pen.Ink = colour
			} else {
				s.pen.Ground = colour
			}
			i += length - 1
		case n == 39:
			s.pen.Ink = ""
		case n == 49:
			s.pen.Ground = ""
		case n >= 30 && n <= 37 || n >= 90 && n <= 97:
			s.pen.Ink = list[i]
		case n >= 40 && n <= 47 || n >= 100 && n <= 107:
			s.pen.Ground = list[i]
		default: // italics, underlines: not told apart
		}
	}
}
