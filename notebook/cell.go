package notebook

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// CellType is the kind of a cell.
type CellType string

// The cell types of nbformat 4.
const (
	Code     CellType = "code"
	Markdown CellType = "markdown"
	Raw      CellType = "raw"
)

// Valid reports whether t is one of the three types.
func (t CellType) Valid() bool { return t == Code || t == Markdown || t == Raw }

// Cell is one cell of a [Document]. It is a view: it shows the cell as it is
// now, and the document's methods change it. A cell that was deleted can still
// be read.
type Cell struct {
	doc *Document
	n   *node
	typ CellType
}

// newCell checks that n is a cell; reason says what is wrong with it, if
// something is.
func newCell(d *Document, n *node) (c *Cell, reason string) {
	if n.kind() != kindObject {
		return nil, fmt.Sprintf("expected an object, found %s", n.kind())
	}
	typ := n.get("cell_type")
	if typ == nil {
		return nil, "cell_type is missing"
	}
	// The usual spelling is recognised without a copy; a notebook can have a million
	// cells.
	c = &Cell{doc: d, n: n}
	switch string(typ.raw) {
	case `"code"`:
		c.typ = Code
	case `"markdown"`:
		c.typ = Markdown
	case `"raw"`:
		c.typ = Raw
	default:
		name, ok := typ.str()
		if !ok {
			return nil, fmt.Sprintf("cell_type is %s", typ.kind())
		}
		if c.typ = CellType(name); !c.typ.Valid() {
			return nil, fmt.Sprintf("cell_type is %q, expected code, markdown or raw", name)
		}
	}
	return c, ""
}

// Type returns the cell's type.
func (c *Cell) Type() CellType { return c.typ }

// ID returns the cell's id; empty when it has none, as before nbformat 4.5.
func (c *Cell) ID() string {
	id, _ := c.n.get("id").str()
	return id
}

// Source returns the cell's text.
func (c *Cell) Source() string { return c.n.get("source").multiline() }

// ExecutionCount returns the prompt number; ok is false when the cell has
// none, or null.
func (c *Cell) ExecutionCount() (count int, ok bool) {
	return c.n.get("execution_count").integer()
}

// OutputCount returns how many outputs a code cell has, without decoding them.
func (c *Cell) OutputCount() int {
	if outputs := c.n.get("outputs"); outputs != nil && outputs.kind() == kindArray {
		return outputs.length()
	}
	return 0
}

// Metadata returns the value under a path of names in the cell's metadata; an
// empty path is the whole. ok is false when there is nothing.
func (c *Cell) Metadata(path ...string) (value json.RawMessage, ok bool) {
	return rawValue(c.n.get("metadata").at(path...))
}

// Tags returns metadata.tags. Entries that are no strings are passed over.
func (c *Cell) Tags() []string {
	var tags []string
	list := c.n.at("metadata", "tags")
	if list == nil {
		return nil
	}
	list.each(func(_ int, key []byte, v *node) bool {
		if tag, ok := v.str(); ok && key == nil {
			tags = append(tags, tag)
		}
		return true
	})
	return tags
}

// HasTag reports whether the cell has the tag.
func (c *Cell) HasTag(tag string) bool {
	return slices.Contains(c.Tags(), tag)
}

// JSON returns the cell as it is written.
func (c *Cell) JSON() json.RawMessage { return c.n.clone().bytes() }

// level is how deep a cell's brackets are: root, list, cell.
const cellLevel = 2

func rawValue(n *node) (json.RawMessage, bool) {
	if n == nil {
		return nil, false
	}
	return append(json.RawMessage(nil), n.bytes()...), true
}

func language(metadata *node) string {
	for _, path := range [][]string{{"language_info", "name"}, {"kernelspec", "language"}, {"kernel_info", "language"}} {
		if name, ok := metadata.at(path...).str(); ok && name != "" {
			return strings.ToLower(name)
		}
	}
	return ""
}
