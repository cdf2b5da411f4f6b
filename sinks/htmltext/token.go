package htmltext

import (
	"strings"

	"golang.org/x/net/html"
)

// attrs are the attributes that are used.
type attrs struct {
	href, src, alt, class, start, colspan, rowspan string
	hidden, checked                                bool
	kind                                           string // type
}

// attributes reads those of the tag that z stands at, nil if it has none that is
// used.
func attributes(z *html.Tokenizer) *attrs {
	var a attrs
	used := false
	for {
		name, value, more := z.TagAttr()
		used = a.set(string(name), string(value)) || used
		if !more {
			break
		}
	}
	if !used {
		return nil
	}
	return &a
}

// set takes an attribute if it is one that is used. The first of a name counts.
func (a *attrs) set(name, value string) bool {
	var field *string
	switch name {
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
		return false
	}
	if field != nil && *field == "" {
		*field = value
	}
	return true
}

// parse builds the tree of a document. The tokenizer reads each byte once.
func parse(s string) *node {
	root := &node{tag: "html"}
	p := &parser{stack: []*node{root}}
	z := html.NewTokenizer(strings.NewReader(s))
	var raw *node // the element whose contents, which are not markup, come next
	for {
		kind := z.Next()
		if raw != nil && kind == html.TextToken {
			if !dropped[raw.tag] {
				raw.children = []*node{{text: string(z.Text())}}
			}
			raw = nil
			continue
		}
		raw = nil
		switch kind {
		case html.ErrorToken: // the end, or a tag that never ends
			if rest := z.Raw(); len(rest) > 0 {
				p.add(&node{text: html.UnescapeString(string(rest))})
			}
			return root
		case html.TextToken:
			p.add(&node{text: string(z.Text())})
		case html.EndTagToken:
			name, _ := z.TagName()
			p.end(string(name))
		case html.StartTagToken, html.SelfClosingTagToken:
			name, more := z.TagName()
			n := &node{tag: string(name)}
			if more {
				n.attrs = attributes(z)
			}
			if rawText[n.tag] {
				p.add(n)
				raw = n
				continue
			}
			p.start(n, kind == html.SelfClosingTagToken)
		default: // comments and declarations are not shown
		}
	}
}

func space(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' }
