package htmltext

import (
	"html"
	"strings"
)

// tokenKind says what a token is.
type tokenKind uint8

const (
	textToken tokenKind = iota
	startToken
	endToken
)

// token is one piece of markup. Comments and declarations are none.
type token struct {
	kind  tokenKind
	name  string // of a tag, lower case
	text  string // of a text, entities decoded
	attrs *attrs // nil if it has none that is used
	empty bool   // <br/>
}

// attrs are the attributes that are used.
type attrs struct {
	href, src, alt, class, start, colspan, rowspan string
	hidden, checked                                bool
	kind                                           string // type
}

// lexer cuts HTML into tokens, roughly as the WHATWG tokenizer (section 13.2.5)
// does.
type lexer struct {
	s string
	// literal is set when a "<" turned out to open a tag that never ends: all
	// that follows is text, and no later "<" is tried again.
	literal bool
}

// next returns the next token; false at the end.
func (l *lexer) next() (token, bool) {
	for len(l.s) > 0 {
		at := strings.IndexByte(l.s, '<')
		if at < 0 || l.literal {
			at = len(l.s)
		}
		if at > 0 {
			return l.takeText(at), true
		}
		switch t, ok := l.markup(); {
		case ok:
			return t, true
		case l.literal:
			return l.takeText(len(l.s)), true
		}
	}
	return token{}, false
}

func (l *lexer) takeText(n int) token {
	t := token{kind: textToken, text: html.UnescapeString(l.s[:n])}
	l.s = l.s[n:]
	return t
}

// markup reads what begins with "<". Without a token it has either skipped
// something or set literal.
func (l *lexer) markup() (token, bool) {
	rest := l.s[1:]
	switch {
	case strings.HasPrefix(rest, "!--"):
		l.skipTo(rest[3:], "-->")
		return token{}, false
	case strings.HasPrefix(rest, "!"), strings.HasPrefix(rest, "?"):
		l.skipTo(rest, ">")
		return token{}, false
	case len(rest) > 1 && rest[0] == '/' && letter(rest[1]):
		return l.tag(rest[1:], endToken)
	case len(rest) > 0 && letter(rest[0]):
		return l.tag(rest, startToken)
	default: // a lone "<" is text
		l.s = rest
		return token{kind: textToken, text: "<"}, true
	}
}

func (l *lexer) skipTo(s, end string) {
	_, after, ok := strings.Cut(s, end)
	if !ok {
		l.s = ""
		return
	}
	l.s = after
}

// tag reads a tag from its name on.
func (l *lexer) tag(s string, kind tokenKind) (token, bool) {
	n := 0
	for n < len(s) && !space(s[n]) && s[n] != '>' && s[n] != '/' {
		n++
	}
	t := token{kind: kind, name: strings.ToLower(s[:n])}
	s = s[n:]
	for {
		s = strings.TrimLeft(s, " \t\n\r\f/")
		if s == "" {
			l.literal = true
			return token{}, false
		}
		if s[0] == '>' {
			t.empty = l.s[len(l.s)-len(s)-1] == '/'
			l.s = s[1:]
			return t, true
		}
		name, value, rest, ok := attribute(s)
		if !ok {
			l.literal = true
			return token{}, false
		}
		t.set(name, value)
		s = rest
	}
}

// attribute reads one attribute; false when the input ends in it.
func attribute(s string) (name, value, rest string, ok bool) {
	n := 1 // a name may begin with anything, "=" included
	for n < len(s) && !space(s[n]) && s[n] != '=' && s[n] != '>' && s[n] != '/' {
		n++
	}
	name, s = s[:n], s[n:]
	after := strings.TrimLeft(s, " \t\n\r\f")
	if after == "" || after[0] != '=' {
		return name, "", s, after != ""
	}
	s = strings.TrimLeft(after[1:], " \t\n\r\f")
	if s == "" {
		return "", "", "", false
	}
	if q := s[0]; q == '"' || q == '\'' {
		end := strings.IndexByte(s[1:], q)
		if end < 0 {
			return "", "", "", false
		}
		return name, s[1 : 1+end], s[2+end:], true
	}
	n = 0
	for n < len(s) && !space(s[n]) && s[n] != '>' {
		n++
	}
	return name, s[:n], s[n:], true
}

// set takes an attribute if it is one that is used. The first of a name counts.
func (t *token) set(name, value string) {
	a := t.attrs
	if a == nil {
		a = &attrs{}
	}
	var field *string
	switch strings.ToLower(name) {
	case "href":
		field = &a.href
	case "src":
		field = &a.src
	case "alt":
		field = &a.alt
	case "class":
		field = &a.class
	case "start":
		field = &a.start
	case "colspan":
		field = &a.colspan
	case "rowspan":
		field = &a.rowspan
	case "type":
		field = &a.kind
	case "hidden":
		a.hidden = true
	case "checked":
		a.checked = true
	default:
		return
	}
	t.attrs = a
	if field != nil && *field == "" {
		*field = html.UnescapeString(value)
	}
}

// raw skips the contents of an element that holds no markup and returns them.
func (l *lexer) raw(name string) string {
	for at := 0; ; {
		i := strings.Index(l.s[at:], "</")
		if i < 0 {
			text := l.s
			l.s = ""
			return text
		}
		at += i
		rest := l.s[at+2:]
		if len(rest) >= len(name) && strings.EqualFold(rest[:len(name)], name) && (len(rest) == len(name) || !letter(rest[len(name)])) {
			text := l.s[:at]
			l.skipTo(rest, ">")
			return text
		}
		at += 2
	}
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func space(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' }
