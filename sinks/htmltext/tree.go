package htmltext

import (
	"slices"
	"strings"
)

// maxDepth is how deep elements nest; deeper ones give their contents to the
// one that is open there.
const maxDepth = 100

// node is an element or a text.
type node struct {
	tag      string // empty for a text
	text     string
	attrs    *attrs
	children []*node
}

// attr returns the attributes of n.
func (n *node) attr() *attrs {
	if n.attrs == nil {
		return &noAttrs
	}
	return n.attrs
}

var noAttrs attrs

// rawText names the elements whose contents are not markup. Of these a textarea
// alone is shown.
var rawText = set("script", "style", "title", "textarea", "xmp", "iframe", "noembed", "noframes", "noscript")

// dropped names the elements that are not shown, with all they hold.
var dropped = set("script", "style", "title", "iframe", "noembed", "noframes", "noscript", "template", "svg", "canvas", "object", "audio", "video", "map", "datalist", "select")

var void = set("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr")

// block names the elements that begin a new block, and so end a paragraph.
var block = set("address", "article", "aside", "blockquote", "body", "center", "dd", "details", "dialog", "dir", "div", "dl", "dt", "fieldset",
	"figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup", "hr", "html", "li", "main", "menu", "nav",
	"ol", "p", "pre", "search", "section", "summary", "table", "caption", "thead", "tbody", "tfoot", "tr", "td", "th", "ul", "xmp")

// closes says which open elements the start of an element ends, and which
// element keeps the search from going further up.
var closes = map[string]struct{ ends, within map[string]bool }{
	"li":    {set("li"), set("ul", "ol", "menu", "dir", "table")},
	"dt":    {set("dt", "dd"), set("dl", "table")},
	"dd":    {set("dt", "dd"), set("dl", "table")},
	"td":    {set("td", "th"), set("tr", "table")},
	"th":    {set("td", "th"), set("tr", "table")},
	"tr":    {set("tr", "caption"), set("table")},
	"thead": {set("thead", "tbody", "tfoot", "caption"), set("table")},
	"tbody": {set("thead", "tbody", "tfoot", "caption"), set("table")},
	"tfoot": {set("thead", "tbody", "tfoot", "caption"), set("table")},
}

// parser builds a tree. The first element of the stack is the root, the last
// the one that is open.
type parser struct{ stack []*node }

func (p *parser) add(n *node) {
	top := p.stack[len(p.stack)-1]
	top.children = append(top.children, n)
}

// start opens an element, after closing what it implies the end of.
func (p *parser) start(n *node, empty bool) {
	if c, ok := closes[n.tag]; ok {
		p.close(c.ends, c.within)
	}
	if block[n.tag] {
		p.close(inParagraph, notInParagraph)
	}
	p.add(n)
	foreign := empty && n.tag == "svg" // only there does <x/> have no contents
	if !void[n.tag] && !foreign && len(p.stack) < maxDepth {
		p.stack = append(p.stack, n)
	}
}

// close closes the innermost open element of ends, if no element of within
// stands in between.
func (p *parser) close(ends, within map[string]bool) {
	for i := len(p.stack) - 1; i > 0; i-- {
		tag := p.stack[i].tag
		if ends[tag] {
			p.stack = p.stack[:i]
			return
		}
		if within[tag] {
			return
		}
	}
}

// end closes the innermost element of that name, if there is one in the same
// table cell: what is wrongly nested in a cell must not end its table.
func (p *parser) end(name string) {
	for i := len(p.stack) - 1; i > 0; i-- {
		tag := p.stack[i].tag
		if tag == name {
			p.stack = p.stack[:i]
			return
		}
		if tag == "table" || inCell[tag] && !tableParts[name] {
			return
		}
	}
}

var (
	inCell         = set("td", "th", "caption")
	tableParts     = set("table", "tr", "thead", "tbody", "tfoot", "td", "th", "caption")
	inParagraph    = set("p")
	notInParagraph = set("td", "th", "table", "li", "caption", "button", "blockquote", "div")
)

func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// shown reports whether anything of n may be shown.
func (n *node) shown() bool {
	return !dropped[n.tag] && !n.attr().hidden && !(n.tag == "input" && n.attr().kind != "checkbox")
}

// is reports whether n is one of these elements.
func (n *node) is(tags ...string) bool {
	return slices.Contains(tags, n.tag)
}

// plain returns the text of n as it stands, without markup.
func (n *node) plain(b *strings.Builder) {
	if !n.shown() {
		return
	}
	if n.tag == "br" {
		b.WriteByte('\n')
	}
	b.WriteString(n.text)
	for _, c := range n.children {
		c.plain(b)
	}
}
