package page

import (
	"html/template"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// plainTags are the elements that may stand in a text; they are written without
// attributes.
var plainTags = map[string]bool{
	"b": true, "i": true, "u": true, "em": true, "strong": true, "sub": true, "sup": true, "kbd": true, "code": true, "small": true, "mark": true, "br": true, "s": true, "del": true,
}

var (
	plainTag = regexp.MustCompile(`^<(/?)([A-Za-z]+)\s*(/?)>`)
	autolink = regexp.MustCompile(`^<(https?://[^\s<>]+|[\w.+-]+@[\w.-]+)>`)
	target   = regexp.MustCompile(`^\(\s*<?([^\s<>()]*(?:\([^\s()]*\)[^\s<>()]*)*)>?(?:\s+(?:"([^"]*)"|'([^']*)'))?\s*\)`)
)

// inline writes the text of a block.
func (w *writer) inline(text string, depth int) {
	if depth > maxNesting {
		w.text(text)
		return
	}
	for text != "" {
		at := strings.IndexAny(text, "\\`*_~[!<$\n")
		if at < 0 {
			w.text(text)
			return
		}
		// An underscore in a word is one.
		if text[at] == '_' && at > 0 && isWord(text[:at]) {
			w.text(text[:at+1])
			text = text[at+1:]
			continue
		}
		hard := text[at] == '\n' && strings.HasSuffix(text[:at], "  ")
		w.text(text[:at])
		text = text[at:]
		if used := w.special(text, hard, depth); used > 0 {
			text = text[used:]
			continue
		}
		w.text(text[:1])
		text = text[1:]
	}
}

func isWord(before string) bool {
	r, _ := utf8.DecodeLastRuneInString(before)
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

func (w *writer) text(s string) { w.b.WriteString(template.HTMLEscapeString(s)) }

// special writes what a sign begins, and returns how long that is; 0 when the
// sign stands for itself.
func (w *writer) special(text string, hard bool, depth int) int {
	switch text[0] {
	case '\n':
		if hard {
			w.b.WriteString("<br>")
		}
		w.b.WriteByte('\n')
		return 1
	case '\\':
		return w.backslash(text)
	case '`':
		return w.codeSpan(text)
	case '*', '_', '~':
		return w.emphasis(text, depth)
	case '!':
		if strings.HasPrefix(text, "![") {
			return w.image(text)
		}
	case '[':
		return w.link(text, depth)
	case '<':
		return w.angle(text, depth)
	case '$':
		// A formula stays as it is: its signs mean nothing here.
		if end := strings.IndexByte(near(text[1:]), '$'); end > 0 && !strings.Contains(text[1:end+1], "\n\n") {
			w.text(text[:end+2])
			return end + 2
		}
	}
	return 0
}

func (w *writer) backslash(text string) int {
	if len(text) < 2 {
		return 0
	}
	if text[1] == '\n' {
		w.b.WriteString("<br>\n")
		return 2
	}
	if strings.IndexByte("\\`*_{}[]()#+-.!<>|~$\"'&", text[1]) < 0 {
		return 0
	}
	w.text(text[1:2])
	return 2
}

func (w *writer) codeSpan(text string) int {
	n := len(text) - len(strings.TrimLeft(text, "`"))
	if n > maxReach/2 {
		w.text(text[:n])
		return n
	}
	ticks := text[:n]
	rest := text
	text = near(text)
	for at := n; at < len(text); {
		end := strings.Index(text[at:], ticks)
		if end < 0 {
			break
		}
		end += at
		run := len(text[end:]) - len(strings.TrimLeft(text[end:], "`"))
		if run == n {
			code := strings.ReplaceAll(text[n:end], "\n", " ")
			if strings.HasPrefix(code, " ") && strings.HasSuffix(code, " ") && strings.TrimSpace(code) != "" {
				code = code[1 : len(code)-1]
			}
			w.b.WriteString("<code>" + template.HTMLEscapeString(code) + "</code>")
			return end + n
		}
		at = end + run
	}
	w.text(rest[:n])
	return n
}

func (w *writer) emphasis(text string, depth int) int {
	sign := text[0]
	for _, kind := range []struct {
		marks, open, shut string
	}{{"**", "<strong>", "</strong>"}, {"__", "<strong>", "</strong>"}, {"~~", "<del>", "</del>"}, {"*", "<em>", "</em>"}, {"_", "<em>", "</em>"}} {
		if kind.marks[0] != sign || !strings.HasPrefix(text, kind.marks) {
			continue
		}
		n := len(kind.marks)
		if len(text) <= n || strings.ContainsAny(text[n:n+1], " \n\t") {
			continue
		}
		if end := closing(text, kind.marks); end > 0 {
			w.b.WriteString(kind.open)
			w.inline(text[n:end], depth+1)
			w.b.WriteString(kind.shut)
			return end + n
		}
	}
	return 0
}

// maxReach is how far what a sign begins may be from what ends it, in bytes, so
// that many signs do not cost the square of their number.
const maxReach = 4096

// near is the part of a text in which an end is looked for.
func near(text string) string { return text[:min(len(text), maxReach)] }

// closing finds where marks end what they began at the start of text, 0 when
// they do not.
func closing(text, marks string) int {
	n := len(marks)
	text = near(text)
	for at := n; at < len(text); {
		end := strings.Index(text[at:], marks)
		if end < 0 {
			return 0
		}
		end += at
		run := len(text[end:]) - len(strings.TrimLeft(text[end:], marks[:1]))
		before, after := text[end-1], end+run
		inWord := marks[0] == '_' && after < len(text) && isWord(text[:after+1])
		if end > n && before != ' ' && before != '\n' && before != '\\' && !inWord && (run == n || run > 2) {
			return end + run - n
		}
		at = end + run
	}
	return 0
}

// bracket returns the text in the brackets at the start, and how long they are.
func bracket(text string) (inner string, length int) {
	depth := 0
	text = near(text)
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '[':
			depth++
		case ']':
			if depth--; depth == 0 {
				return text[1:i], i + 1
			}
		}
	}
	return "", 0
}

func (w *writer) link(text string, depth int) int {
	inner, n := bracket(text)
	m := target.FindStringSubmatch(near(text[n:]))
	if n == 0 || m == nil {
		return 0
	}
	href, ok := address(m[1])
	if !ok {
		w.inline(inner, depth+1)
		return n + len(m[0])
	}
	w.b.WriteString(`<a href="` + template.HTMLEscapeString(href) + `" rel="noreferrer noopener">`)
	w.inline(inner, depth+1)
	w.b.WriteString("</a>")
	return n + len(m[0])
}

// address says whether a link may be followed.
func address(to string) (string, bool) {
	u, err := url.Parse(to)
	if err != nil {
		return "", false
	}
	switch strings.ToLower(u.Scheme) {
	case "", "http", "https", "mailto":
		return to, true
	default:
		return "", false
	}
}

// image shows a picture that the notebook holds. Another one would have to be
// loaded, so it is a link.
func (w *writer) image(text string) int {
	alt, n := bracket(text[1:])
	m := longTarget(text[1+n:])
	if n == 0 || m == nil {
		return 0
	}
	length := 1 + n + len(m[0])
	src := ""
	if name, ok := strings.CutPrefix(m[1], "attachment:"); ok && w.attachment != nil {
		if plain, err := url.PathUnescape(name); err == nil {
			name = plain
		}
		b := w.attachment(name)
		for _, mime := range pictures {
			if to, ok := picture(b, mime); ok {
				src = string(to)
				break
			}
		}
	} else if dataImage.MatchString(m[1]) {
		src = m[1]
	}
	if src == "" {
		if href, ok := address(m[1]); ok && href != "" {
			w.b.WriteString(`<a href="` + template.HTMLEscapeString(href) + `" rel="noreferrer noopener">[` + template.HTMLEscapeString(alt) + `]</a>`)
		} else {
			w.text("[" + alt + "]")
		}
		return length
	}
	w.b.WriteString(`<img src="` + template.HTMLEscapeString(src) + `" alt="` + template.HTMLEscapeString(alt) + `">`)
	return length
}

// longTarget is target for pictures, whose address may be the picture itself.
func longTarget(text string) []string {
	if strings.HasPrefix(text, "(data:") {
		if end := strings.IndexByte(text, ')'); end > 0 {
			return target.FindStringSubmatch(text[:end+1])
		}
	}
	return target.FindStringSubmatch(near(text))
}

var dataImage = regexp.MustCompile(`^data:image/(?:png|jpeg|gif|webp|svg\+xml);base64,[A-Za-z0-9+/=]*$`)

// angle writes what an angle bracket begins: a link, or an element that may
// stand in a text.
func (w *writer) angle(text string, depth int) int {
	if m := autolink.FindStringSubmatch(text); m != nil {
		href := m[1]
		if !strings.Contains(href, "://") {
			href = "mailto:" + href
		}
		w.b.WriteString(`<a href="` + template.HTMLEscapeString(href) + `" rel="noreferrer noopener">` + template.HTMLEscapeString(m[1]) + "</a>")
		return len(m[0])
	}
	m := plainTag.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	name := strings.ToLower(m[2])
	switch {
	case !plainTags[name]:
		return 0
	case name == "br":
		w.b.WriteString("<br>")
		return len(m[0])
	case m[1] == "":
		// Only an element that ends in the same text is one.
		end := strings.Index(strings.ToLower(near(text)), "</"+name+">")
		if end < len(m[0]) {
			return 0
		}
		w.b.WriteString("<" + name + ">")
		w.inline(text[len(m[0]):end], depth+1)
		w.b.WriteString("</" + name + ">")
		return end + len(name) + 3
	default:
		return 0
	}
}
