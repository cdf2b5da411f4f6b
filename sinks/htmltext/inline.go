package htmltext

import "strings"

// inlineText gathers the text of a paragraph. White space is one blank, and
// none at the ends of a line.
type inlineText struct {
	b     strings.Builder
	gap   bool // white space was seen since the last character
	begun bool // a character stands on this line
}

// word adds text as it stands.
func (t *inlineText) word(s string) {
	if s == "" {
		return
	}
	if t.gap && t.begun {
		t.b.WriteByte(' ')
	}
	t.gap, t.begun = false, true
	t.b.WriteString(s)
}

// text adds text with its white space.
func (t *inlineText) text(s string) {
	for len(s) > 0 {
		n := 0
		for n < len(s) && !space(s[n]) {
			n++
		}
		t.word(strings.ReplaceAll(s[:n], "\u00a0", " "))
		for n < len(s) && space(s[n]) {
			t.gap = true
			n++
		}
		s = s[n:]
	}
}

func (t *inlineText) breakLine() {
	if t.b.Len() > 0 {
		t.b.WriteByte('\n')
	}
	t.gap, t.begun = false, false
}

// take returns the paragraph and starts an empty one.
func (t *inlineText) take() string {
	s := strings.TrimRight(t.b.String(), " \n")
	*t = inlineText{}
	return s
}

// line renders all of n as one paragraph.
func (r *renderer) line(n *node) string {
	var t inlineText
	for _, c := range n.children {
		r.inline(c, &t)
	}
	return t.take()
}

// inline renders n into a paragraph.
func (r *renderer) inline(n *node, t *inlineText) {
	if !n.shown() {
		return
	}
	switch n.tag {
	case "":
		t.text(n.text)
	case "br":
		if r.cell {
			t.gap = true
			return
		}
		t.breakLine()
	case "wbr":
	case "b", "strong":
		r.emphasis(n, t, "**", &r.strong)
	case "i", "em", "cite", "dfn", "var":
		r.emphasis(n, t, "*", &r.em)
	case "s", "del", "strike":
		off := false
		r.emphasis(n, t, "~~", &off)
	case "code", "kbd", "samp", "tt":
		r.code(n, t)
	case "a":
		r.link(n, t)
	case "img":
		image(n, t)
	case "input":
		if n.attr().checked {
			t.word("[x]")
		} else {
			t.word("[ ]")
		}
	case "q":
		t.word("“" + r.line(n) + "”")
	default:
		isBlock := block[n.tag] // in a place for inline text only, such as a cell
		t.gap = t.gap || isBlock
		for _, c := range n.children {
			r.inline(c, t)
		}
		t.gap = t.gap || isBlock
	}
}

// edges keeps the white space that stands at the ends of an inline element, but
// outside of its marks.
func (n *node) edges(t *inlineText, body func()) {
	var b strings.Builder
	n.plain(&b)
	s := b.String()
	t.gap = t.gap || s != "" && space(s[0])
	body()
	t.gap = t.gap || s != "" && space(s[len(s)-1])
}

func (r *renderer) emphasis(n *node, t *inlineText, mark string, on *bool) {
	if *on {
		for _, c := range n.children {
			r.inline(c, t)
		}
		return
	}
	*on = true
	text := r.line(n)
	*on = false
	n.edges(t, func() {
		if text != "" {
			t.word(mark + text + mark)
		}
	})
}

func (r *renderer) code(n *node, t *inlineText) {
	var b strings.Builder
	n.plain(&b)
	text := strings.Join(strings.Fields(b.String()), " ")
	n.edges(t, func() {
		if text == "" {
			return
		}
		mark := strings.Repeat("`", longestRun(text, '`')+1)
		if len(mark) > 1 {
			text = " " + text + " "
		}
		t.word(mark + text + mark)
	})
}

func (r *renderer) link(n *node, t *inlineText) {
	text := r.line(n)
	href := address(n.attr().href)
	n.edges(t, func() {
		switch {
		case text == "":
		case href == "", strings.HasPrefix(href, "#"), href == text:
			t.word(text)
		default:
			t.word("[" + text + "](" + href + ")")
		}
	})
}

func image(n *node, t *inlineText) {
	alt := strings.Join(strings.Fields(n.attr().alt), " ")
	src := address(n.attr().src)
	switch {
	case src != "":
		t.word("![" + alt + "](" + src + ")")
	case alt != "":
		t.word("[image: " + alt + "]")
	case n.attr().src != "":
		t.word("[image]")
	}
}

// address returns a link's target if it is one that a reader can use.
func address(s string) string {
	s = strings.TrimSpace(s)
	scheme, _, ok := strings.Cut(s, ":")
	if ok {
		switch strings.ToLower(strings.TrimSpace(scheme)) {
		case "javascript", "data", "vbscript", "blob":
			return ""
		}
	}
	if strings.ContainsAny(s, " \t\r\n()<>") {
		s = strings.NewReplacer(" ", "%20", "\t", "", "\r", "", "\n", "", "(", "%28", ")", "%29", "<", "%3C", ">", "%3E").Replace(s)
	}
	return s
}
