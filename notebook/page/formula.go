package page

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// maxFormula is how long a formula in a text may be, in bytes, so that many
// dollar signs do not cost the square of their number.
const maxFormula = 4096

// formulas finds what stands between dollar signs, where no other sign means
// anything: blocks between lines of two, and formulas in a text.
type formulas struct{}

var (
	kindFormula      = ast.NewNodeKind("Formula")
	kindFormulaBlock = ast.NewNodeKind("FormulaBlock")
)

// formula is one in a text. Its text is its children.
type formula struct{ ast.BaseInline }

// Kind says what the node is.
func (*formula) Kind() ast.NodeKind { return kindFormula }

// Dump writes the node for whoever debugs.
func (n *formula) Dump(source []byte, level int) { ast.DumpHelper(n, source, level, nil, nil) }

// formulaBlock is a formula of its own. Its text is its lines.
type formulaBlock struct {
	ast.BaseBlock
	whole bool // it has ended
}

// Kind says what the node is.
func (*formulaBlock) Kind() ast.NodeKind { return kindFormulaBlock }

// IsRaw says that signs in it mean nothing.
func (*formulaBlock) IsRaw() bool { return true }

// Dump writes the node for whoever debugs.
func (n *formulaBlock) Dump(source []byte, level int) { ast.DumpHelper(n, source, level, nil, nil) }

// Trigger is what a formula begins with.
func (formulas) Trigger() []byte { return []byte{'$'} }

var twoDollars = []byte("$$")

// Open begins a block at a line with two dollar signs, when it ends in the same
// line or at the end of a later one.
func (formulas) Open(_ ast.Node, in text.Reader, _ parser.Context) (ast.Node, parser.State) {
	line, at := in.PeekLine()
	body, ok := bytes.CutPrefix(bytes.TrimSpace(line), twoDollars)
	if !ok {
		return nil, parser.NoChildren
	}
	end := bytes.Index(body, twoDollars)
	if end >= 0 && end != len(body)-2 || end < 0 && !bytes.Contains(in.Source()[at.Stop:], twoDollars) {
		return nil, parser.NoChildren // a text that begins with one, or has a sum of money
	}
	n := &formulaBlock{whole: end >= 0}
	n.Lines().Append(at)
	in.AdvanceToEOL()
	return n, parser.NoChildren
}

// Continue goes on with the next line.
func (formulas) Continue(node ast.Node, in text.Reader, _ parser.Context) parser.State {
	n := node.(*formulaBlock) // what Open made
	if n.whole {
		return parser.Close
	}
	line, at := in.PeekLine()
	n.Lines().Append(at)
	n.whole = bytes.HasSuffix(bytes.TrimSpace(line), twoDollars)
	in.AdvanceToEOL()
	return parser.Continue | parser.NoChildren
}

// Close ends a block.
func (formulas) Close(ast.Node, text.Reader, parser.Context) {}

// CanInterruptParagraph says that a formula in a paragraph is part of it.
func (formulas) CanInterruptParagraph() bool { return false }

// CanAcceptIndentedLine says that an indented line is code.
func (formulas) CanAcceptIndentedLine() bool { return false }

// Parse reads a formula in a text.
func (formulas) Parse(_ ast.Node, in text.Reader, _ parser.Context) ast.Node {
	n := &formula{}
	marks := 1
	if line, _ := in.PeekLine(); bytes.HasPrefix(line, twoDollars) {
		marks = 2
	}
	length := 0
	for {
		line, at := in.PeekLine()
		if line == nil || length > maxFormula {
			return nil
		}
		from := 0
		if length == 0 {
			from = marks
		}
		if end := bytes.Index(line[from:], twoDollars[:marks]); end >= 0 && length+end > 0 {
			stop := from + end + marks
			n.AppendChild(n, ast.NewRawTextSegment(at.WithStop(at.Start+stop)))
			in.Advance(stop)
			return n
		}
		n.AppendChild(n, ast.NewRawTextSegment(at))
		length += len(line)
		in.AdvanceLine()
	}
}
