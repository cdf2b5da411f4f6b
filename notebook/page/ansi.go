package page

import (
	"fmt"
	"html/template"
	"regexp"
	"strconv"
	"strings"
)

// escape matches control sequences; the first group is that of colours.
var escape = regexp.MustCompile(`\x1b\[([0-9;:]*)m|\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b.?`)

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

// terminal turns text for a terminal into HTML: colours stay, other control
// sequences go away.
func terminal(text string) template.HTML {
	text = overwritten(text)
	var b strings.Builder
	b.WriteString("<pre>")
	var look sgr
	put := func(s string) {
		if s = strings.Map(printable, s); s == "" {
			return
		}
		tag := look.open()
		b.WriteString(tag + template.HTMLEscapeString(s))
		if tag != "" {
			b.WriteString("</span>")
		}
	}
	at := 0
	for _, m := range escape.FindAllStringSubmatchIndex(text, -1) {
		put(text[at:m[0]])
		at = m[1]
		if m[2] >= 0 {
			look.apply(text[m[2]:m[3]])
		}
	}
	put(text[at:])
	b.WriteString("</pre>")
	return template.HTML(b.String()) //nolint:gosec // escaped above
}

func printable(r rune) rune {
	if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
		return -1
	}
	return r
}

// overwritten drops what a carriage return takes the line back over, as of a
// progress bar.
func overwritten(text string) string {
	if !strings.ContainsRune(text, '\r') {
		return text
	}
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i, line := range lines {
		line = strings.TrimRight(line, "\r")
		lines[i] = line[strings.LastIndexByte(line, '\r')+1:]
	}
	return strings.Join(lines, "\n")
}

// apply reads the parameters of a colour sequence.
func (s *sgr) apply(params string) {
	list := strings.FieldsFunc(params, func(r rune) bool { return r == ';' || r == ':' })
	if len(list) == 0 {
		*s = sgr{}
	}
	for i := 0; i < len(list); i++ {
		n, err := strconv.Atoi(list[i])
		switch {
		case err != nil:
			return
		case n == 0:
			*s = sgr{}
		case n == 1:
			s.bold = true
		case n == 3:
			s.italic = true
		case n == 4:
			s.under = true
		case n == 22:
			s.bold = false
		case n == 39:
			s.class, s.style = "", ""
		case n >= 30 && n <= 37:
			s.class, s.style = "f"+strconv.Itoa(n-30), ""
		case n >= 90 && n <= 97:
			s.class, s.style = "f"+strconv.Itoa(n-90), ""
		case n == 38 || n == 48:
			used, colour := extended(list[i+1:])
			i += used
			if n == 38 && colour >= 0 && colour < 16 {
				s.class, s.style = "f"+strconv.Itoa(colour%8), ""
			} else if n == 38 && colour >= 16 {
				s.class, s.style = "", fmt.Sprintf("#%06x", colour-16)
			}
		}
	}
}

// extended reads 5;N or 2;R;G;B. The colour is below 16 for one of the palette's
// first, else its RGB value and 16; -1 when it cannot be read.
func extended(list []string) (used, colour int) {
	var v [4]int
	for i := range min(len(list), len(v)) {
		n, err := strconv.Atoi(list[i])
		if err != nil || n > 255 {
			return i, -1
		}
		v[i] = n
	}
	switch {
	case len(list) >= 2 && v[0] == 5 && v[1] < 16:
		return 2, v[1]
	case len(list) >= 2 && v[0] == 5 && v[1] < 232:
		level := func(n int) int {
			if n == 0 {
				return 0
			}
			return 55 + 40*n
		}
		n := v[1] - 16
		return 2, 16 + level(n/36)<<16 + level(n/6%6)<<8 + level(n%6)
	case len(list) >= 2 && v[0] == 5:
		return 2, 16 + (8+10*(v[1]-232))*0x010101
	case len(list) >= 4 && v[0] == 2:
		return 4, 16 + v[1]<<16 + v[2]<<8 + v[3]
	default:
		return len(list), -1
	}
}
