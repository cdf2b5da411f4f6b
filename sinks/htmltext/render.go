package htmltext

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/coppice-run/coppice/sinks/sanitise"
)

// MaxInput is how many bytes of a document are read.
const MaxInput = 512 << 10

// maxIndent is how many lists and quotations are indented inside one another.
const maxIndent = 8

// Markdown returns the Markdown of an HTML document or fragment, without
// spaces or newlines at its ends. Any goroutine may call it.
func Markdown(s string) string {
	cut := ""
	if len(s) > MaxInput {
		n := MaxInput
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s, cut = s[:n], "\n\n[… the rest of the HTML is not shown …]"
	}
	var r renderer
	return strings.Trim(sanitise.Clean(join(r.blocks(parse(s)))+cut), "\n ")
}

// renderer knows where in the document it is.
type renderer struct {
	indent int // lists and quotations around
	strong bool
	em     bool
	cell   bool // in a table cell: all on one line
}

// blockText is one block of the output.
type blockText struct {
	text string
	// tight blocks follow each other without a blank line between.
	tight bool
}

func join(blocks []blockText) string {
	var b strings.Builder
	for i, k := range blocks {
		switch {
		case i == 0:
		case k.tight && blocks[i-1].tight:
			b.WriteByte('\n')
		default:
			b.WriteString("\n\n")
		}
		b.WriteString(k.text)
	}
	return b.String()
}

// blocks renders the contents of n: what stands between block elements is a
// paragraph.
func (r *renderer) blocks(n *node) []blockText {
	var out []blockText
	var line inlineText
	tight := !n.is("html", "body", "p", "blockquote", "section", "article", "main")
	flush := func() {
		if text := line.take(); text != "" {
			out = append(out, blockText{text, tight})
		}
	}
	for _, c := range n.children {
		if !c.shown() {
			continue
		}
		if c.holdsBlock() {
			flush()
			out = append(out, r.block(c)...)
			continue
		}
		r.inline(c, &line)
	}
	flush()
	return out
}

// holdsBlock reports whether n is a block, or an inline element around one
// (<a><div>…</div></a>), looking one level down.
func (n *node) holdsBlock() bool {
	if block[n.tag] {
		return true
	}
	for _, c := range n.children {
		if block[c.tag] {
			return true
		}
	}
	return false
}

// block renders one block element.
func (r *renderer) block(n *node) []blockText {
	one := func(text string) []blockText {
		if text == "" {
			return nil
		}
		return []blockText{{text: text}}
	}
	switch n.tag {
	case "h1", "h2", "h3", "h4", "h5", "h6":
		text := strings.ReplaceAll(r.line(n), "\n", " ")
		if text == "" {
			return nil
		}
		return one(strings.Repeat("#", int(n.tag[1]-'0')) + " " + text)
	case "hr":
		return one("---")
	case "pre", "xmp":
		return one(fence(n))
	case "blockquote":
		if r.indent >= maxIndent {
			return r.blocks(n)
		}
		r.indent++
		text := join(r.blocks(n))
		r.indent--
		return one(prefix(text, "> ", "> "))
	case "ul", "ol", "menu", "dir":
		return one(r.list(n))
	case "dd":
		if text := join(r.blocks(n)); text != "" {
			return []blockText{{text: prefix(text, ": ", "  "), tight: true}}
		}
		return nil
	case "table":
		return r.table(n)
	default:
		return r.blocks(n)
	}
}

// list renders a list. Items stand close together; what an item holds is
// indented under its marker.
func (r *renderer) list(n *node) string {
	number, err := strconv.Atoi(n.attr().start)
	if err != nil {
		number = 1
	}
	var items []string
	deep := r.indent >= maxIndent
	r.indent++
	for _, c := range n.children {
		if !c.shown() || c.tag == "" && strings.TrimSpace(c.text) == "" {
			continue
		}
		item := c
		if c.tag != "li" {
			item = &node{tag: "li", children: []*node{c}}
		}
		blocks := r.blocks(item)
		for i := range blocks {
			blocks[i].tight = true
		}
		text := join(blocks)
		if text == "" {
			continue
		}
		marker := "- "
		if n.tag == "ol" {
			marker = strconv.Itoa(number) + ". "
			number++
		}
		indent := strings.Repeat(" ", len(marker))
		if deep {
			indent = ""
		}
		if !c.is("li") && c.is("ul", "ol", "menu", "dir") { // a list in a list, not in an item
			marker = indent
		}
		items = append(items, prefix(text, marker, indent))
	}
	r.indent--
	return strings.Join(items, "\n")
}

// prefix puts first before the first line of text and rest before the others.
// An empty line gets no trailing blank.
func prefix(text, first, rest string) string {
	if text == "" {
		return ""
	}
	lines := strings.Split(text, "\n")
	var b strings.Builder
	b.Grow(len(text) + len(lines)*len(rest))
	for i, l := range lines {
		p := rest
		if i == 0 {
			p = first
		} else {
			b.WriteByte('\n')
		}
		if l == "" {
			p = strings.TrimRight(p, " ")
		}
		b.WriteString(p)
		b.WriteString(l)
	}
	return b.String()
}

// fence renders preformatted text as a code block.
func fence(n *node) string {
	var b strings.Builder
	n.plain(&b)
	text := strings.TrimRight(strings.TrimPrefix(strings.ReplaceAll(b.String(), "\r\n", "\n"), "\n"), "\n ")
	if text == "" {
		return ""
	}
	mark := strings.Repeat("`", max(3, longestRun(text, '`')+1))
	return mark + language(n) + "\n" + text + "\n" + mark
}

// language returns what a class "language-x" of a pre or its code says.
func language(n *node) string {
	class := n.attr().class
	for _, c := range n.children {
		if c.tag == "code" {
			class += " " + c.attr().class
		}
	}
	for c := range strings.FieldsSeq(class) {
		name, ok := strings.CutPrefix(c, "language-")
		if ok && strings.IndexFunc(name, func(r rune) bool { return r > 0x7e || r < '!' || r == '`' }) < 0 {
			return name
		}
	}
	return ""
}

func longestRun(s string, c byte) int {
	longest, run := 0, 0
	for i := range len(s) {
		if s[i] != c {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}
