package repl

import (
	"slices"
	"strings"
)

// editor is the text that is being typed. The cursor is an index of text.
type editor struct {
	text   []rune
	cursor int
}

func (e *editor) String() string { return string(e.text) }

func (e *editor) set(s string) { e.text = []rune(s); e.cursor = len(e.text) }

func (e *editor) insert(s string) {
	r := []rune(strings.NewReplacer("\r\n", "\n", "\r", "\n", "\t", "    ").Replace(s))
	e.text = slices.Insert(e.text, e.cursor, r...)
	e.cursor += len(r)
}

// newline begins a line that is indented as the one before, or deeper after a
// colon.
func (e *editor) newline() {
	line := string(e.text[e.lineStart():e.cursor])
	indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
	if strings.HasSuffix(strings.TrimRight(line, " "), ":") {
		indent += "    "
	}
	e.insert("\n" + indent)
}

func (e *editor) backspace() {
	if e.cursor == 0 {
		return
	}
	n := 1
	// In indentation it takes back a whole step.
	if start := e.lineStart(); e.cursor-start >= 4 && (e.cursor-start)%4 == 0 && strings.Trim(string(e.text[start:e.cursor]), " ") == "" {
		n = 4
	}
	e.text = slices.Delete(e.text, e.cursor-n, e.cursor)
	e.cursor -= n
}

func (e *editor) deleteForward() {
	if e.cursor < len(e.text) {
		e.text = slices.Delete(e.text, e.cursor, e.cursor+1)
	}
}

// replace puts s in the place of the text from start to the cursor.
func (e *editor) replace(start int, s string) {
	r := []rune(s)
	e.text = slices.Replace(e.text, start, e.cursor, r...)
	e.cursor = start + len(r)
}

func (e *editor) move(by int) { e.cursor = min(max(e.cursor+by, 0), len(e.text)) }

func (e *editor) lineStart() int {
	i := e.cursor
	for i > 0 && e.text[i-1] != '\n' {
		i--
	}
	return i
}

func (e *editor) lineEnd() int {
	i := e.cursor
	for i < len(e.text) && e.text[i] != '\n' {
		i++
	}
	return i
}

// up moves to the line above and reports whether there is one.
func (e *editor) up() bool {
	start := e.lineStart()
	if start == 0 {
		return false
	}
	column := e.cursor - start
	e.cursor = start - 1
	e.cursor = min(e.lineStart()+column, start-1)
	return true
}

// down moves to the line below and reports whether there is one.
func (e *editor) down() bool {
	end := e.lineEnd()
	if end == len(e.text) {
		return false
	}
	column := e.cursor - e.lineStart()
	e.cursor = end + 1
	e.cursor = min(e.cursor+column, e.lineEnd())
	return true
}

// complete says whether Enter runs the text: its brackets and long strings are
// closed, and a block ends with an empty line.
func (e *editor) complete() bool {
	text := string(e.text)
	depth, open := scan(text)
	switch {
	case open != "" || depth > 0:
		return false
	case !strings.Contains(strings.TrimSpace(text), "\n"):
		return !strings.HasSuffix(strings.TrimSpace(text), ":") && !strings.HasSuffix(strings.TrimSpace(text), "\\") && !strings.HasPrefix(strings.TrimSpace(text), "@")
	default:
		lines := strings.Split(text, "\n")
		last := lines[len(lines)-1]
		return strings.TrimSpace(last) == "" || e.cursor == len(e.text) && !block(lines)
	}
}

// block says whether a line opens a block that may go on.
func block(lines []string) bool {
	for _, l := range lines {
		if strings.HasSuffix(strings.TrimRight(l, " "), ":") {
			return true
		}
	}
	return false
}

// scan returns how many brackets are open at the end of text, and the quotes of
// a string that is not closed.
func scan(text string) (depth int, open string) {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case open != "":
			switch {
			case c == '\\':
				i++
			case strings.HasPrefix(text[i:], open):
				i += len(open) - 1
				open = ""
			case c == '\n' && len(open) == 1:
				open = ""
			}
		case c == '#':
			for i+1 < len(text) && text[i+1] != '\n' {
				i++
			}
		case strings.HasPrefix(text[i:], `"""`), strings.HasPrefix(text[i:], "'''"):
			open = text[i : i+3]
			i += 2
		case c == '"' || c == '\'':
			open = string(c)
		case strings.IndexByte("([{", c) >= 0:
			depth++
		case strings.IndexByte(")]}", c) >= 0:
			depth--
		}
	}
	if len(open) == 1 {
		open = ""
	}
	return depth, open
}
