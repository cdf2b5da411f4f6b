package page

import (
	"bytes"
	"html/template"
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/coppice-run/coppice/notebook"
)

const (
	// maxNesting is how deeply lists and quotations may nest; the marks of deeper
	// ones are text.
	maxNesting = 12
	// maxDepth is how deep the tree of a source may be. Emphasis and pictures can
	// nest as often as there are marks, and a tree is written recursively: a source
	// whose tree is deeper is shown as it was written.
	maxDepth = 200
	// maxCost is how many steps reading a source may take: about a second. A
	// source that could take more is shown as it was written.
	maxCost = 1 << 30
)

// reader is CommonMark with the tables, struck text and task lists of GitHub,
// and with formulas. It keeps no state between sources.
var reader = func() parser.Parser {
	blocks := parser.DefaultBlockParsers()
	for i, b := range blocks {
		switch p := b.Value.(parser.BlockParser); p {
		case parser.NewListParser(), parser.NewListItemParser(), parser.NewBlockquoteParser():
			blocks[i].Value = shallow{p}
		case parser.NewHTMLBlockParser():
			blocks[i].Value = document{p}
		}
	}
	return parser.NewParser(
		parser.WithBlockParsers(append(blocks, util.Prioritized(formulas{}, 650))...),
		parser.WithInlineParsers(append(parser.DefaultInlineParsers(),
			util.Prioritized(extension.NewTaskCheckBoxParser(), 0),
			util.Prioritized(formulas{}, 150),
			util.Prioritized(extension.NewStrikethroughParser(), 500))...),
		parser.WithParagraphTransformers(append(parser.DefaultParagraphTransformers(),
			util.Prioritized(extension.NewTableParagraphTransformer(), 200))...),
		parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)),
	)
}()

// markdown turns Markdown into HTML. attachment may be nil.
func markdown(source string, code *highlighter, attachment func(string) notebook.Bundle) template.HTML {
	src := []byte(strings.ReplaceAll(source, "\r\n", "\n"))
	plain := template.HTML("<pre>" + template.HTMLEscapeString(string(src)) + "</pre>") //nolint:gosec // escaped
	if cost(src) > maxCost {
		return plain
	}
	tree := reader.Parse(text.NewReader(src))
	if !prepare(tree, src) {
		return plain
	}
	var b bytes.Buffer
	out := renderer.NewRenderer(renderer.WithNodeRenderers(
		util.Prioritized(&writer{code: code, attachment: attachment}, 100),
		util.Prioritized(extension.NewTableHTMLRenderer(), 500),
		util.Prioritized(extension.NewStrikethroughHTMLRenderer(), 500),
		util.Prioritized(html.NewRenderer(), 1000)))
	if out.Render(&b, src, tree) != nil {
		return plain
	}
	return template.HTML(b.String()) //nolint:gosec // text is escaped, and HTML of the source is in frames
}

// cost is about how many steps it can take to read a source. In three places
// they grow as the square of what is written: each link looks for its end in the
// rest of the line; each mark of emphasis for the one that it closes, and each
// definition of a link for the rest, in the paragraph.
func cost(source []byte) int {
	steps, marks, definitions := 0, 0, 0
	for line := range bytes.Lines(source) {
		steps += len(line) * (1 + bytes.Count(line, []byte("](")))
		if len(bytes.TrimSpace(line)) == 0 {
			steps += marks*marks + 4*definitions*definitions
			marks, definitions = 0, 0
			continue
		}
		if bytes.Contains(line, []byte("]:")) {
			definitions++
		}
		before := byte(0)
		for _, c := range line {
			if c != before && (c == '*' || c == '_' || c == '~') {
				marks++
			}
			before = c
		}
	}
	return steps + marks*marks + 4*definitions*definitions
}

// prepare walks through a tree without recursion. It marks the HTML that may
// stand in a text, and says whether the tree is shallow enough to be written.
func prepare(root ast.Node, source []byte) bool {
	depth := 0
	for n := root; ; {
		if first := n.FirstChild(); first != nil {
			if n.Type() != ast.TypeDocument {
				markPlain(first, source)
			}
			if depth++; depth > maxDepth {
				return false
			}
			n = first
			continue
		}
		for n != root && n.NextSibling() == nil {
			n = n.Parent()
			depth--
		}
		if n == root {
			return true
		}
		n = n.NextSibling()
	}
}

// plainTags are the elements that may stand in a text; they are written without
// attributes.
var plainTags = map[string]bool{
	"b": true, "i": true, "u": true, "em": true, "strong": true, "sub": true, "sup": true, "kbd": true, "code": true, "small": true, "mark": true, "br": true, "s": true, "del": true,
}

var plainTag = regexp.MustCompile(`^<(/?)([A-Za-z]+)\s*/?>$`)

// tagName is the attribute of a node of HTML that is written as an element.
const tagName = "page-tag"

// markPlain marks, of the siblings of first, the tags that may stand in a text
// and that are closed in order there.
func markPlain(first ast.Node, source []byte) {
	type opened struct {
		node *ast.RawHTML
		name string
	}
	var open []opened
	waiting := map[string]int{}
	for n := first; n != nil; n = n.NextSibling() {
		raw, ok := n.(*ast.RawHTML)
		if !ok {
			continue
		}
		m := plainTag.FindSubmatch(raw.Segments.Value(source))
		if m == nil {
			continue
		}
		name := strings.ToLower(string(m[2]))
		switch {
		case !plainTags[name]:
		case name == "br":
			raw.SetAttributeString(tagName, "<br>")
		case len(m[1]) == 0:
			open = append(open, opened{raw, name})
			waiting[name]++
		case waiting[name] > 0:
			for {
				last := open[len(open)-1]
				open = open[:len(open)-1]
				waiting[last.name]--
				if last.name == name {
					last.node.SetAttributeString(tagName, "<"+name+">")
					raw.SetAttributeString(tagName, "</"+name+">")
					break
				}
			}
		}
	}
}

// shallow is a block that nests, up to maxNesting.
type shallow struct{ parser.BlockParser }

// Open begins a block.
func (p shallow) Open(parent ast.Node, in text.Reader, pc parser.Context) (ast.Node, parser.State) {
	depth := 0
	for n := parent; n != nil; n = n.Parent() {
		if k := n.Kind(); k == ast.KindListItem || k == ast.KindBlockquote {
			depth++
		}
	}
	if depth > maxNesting {
		return nil, parser.NoChildren
	}
	return p.BlockParser.Open(parent, in, pc)
}

// document is HTML that is more than a word in a text.
type document struct{ parser.BlockParser }

var leadingTag = regexp.MustCompile(`^\s*</?([A-Za-z]+)[\s/>]`)

// Open begins a block.
func (p document) Open(parent ast.Node, in text.Reader, pc parser.Context) (ast.Node, parser.State) {
	line, _ := in.PeekLine()
	if m := leadingTag.FindSubmatch(line); m != nil && plainTags[strings.ToLower(string(m[1]))] {
		return nil, parser.NoChildren
	}
	return p.BlockParser.Open(parent, in, pc)
}
