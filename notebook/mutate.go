package notebook

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"unicode/utf8"
)

// touch is called before each change of a document's tree, and only when
// something will be another, so that Edited tells the truth.
func (d *Document) touch() { d.edited = true }

// setMember sets a member of a cell.
func (d *Document) setMember(c *Cell, key string, val *node) {
	d.touch()
	c.n.expand().setMember(key, val, d.style(), cellLevel)
}

func (d *Document) removeMember(c *Cell, key string) bool {
	if c.n.get(key) == nil {
		return false
	}
	d.touch()
	return c.n.expand().removeMember(key, d.style(), cellLevel)
}

// setCells replaces the list of cells.
func (d *Document) setCells(cells []*Cell) {
	if slices.Equal(cells, d.cells) {
		return
	}
	d.touch()
	have := make(map[*node]item, len(d.list.items))
	for _, it := range d.list.items {
		have[it.val] = it
	}
	items := make([]item, len(cells))
	for i, c := range cells {
		it, ok := have[c.n]
		if !ok {
			it = item{val: c.n, fresh: true}
		}
		items[i] = it
	}
	d.list.setItems(items, d.style(), 1)
	d.cells = cells
}

// setSource changes a cell's text and reports whether it was another one. An
// array stays an array and a string a string; the lines before and after the
// change keep their spelling.
func (d *Document) setSource(c *Cell, text string) bool {
	was := c.Source()
	old := c.n.get("source")
	if was == text && (old != nil || text == "") {
		return false
	}
	old = c.n.expand().get("source") // now a part of the tree
	switch {
	case old != nil && old.kind() == kindString:
		d.setMember(c, "source", rawNode(spliceString(old.raw, text, d.style().ascii)))
	case old != nil && old.kind() == kindArray:
		d.touch()
		spliceArray(old.expand(), text, d.style())
	default:
		d.setMember(c, "source", newStrings(SplitLines(text)))
	}
	d.sourceChanged(c, was)
	return true
}

// setType changes what a cell is, as Jupyter does: a code cell has
// execution_count and outputs, and no attachments, which nbformat does not
// allow it and its metadata keeps; the others have neither of the two. The rest of
// the cell stays.
func (d *Document) setType(c *Cell, typ CellType) bool {
	changed := c.typ != typ
	if changed {
		attachments, moves := c.attachments(), c.typ == Code || typ == Code
		d.setMember(c, "cell_type", newString(string(typ)))
		c.typ = typ
		if moves {
			d.setAttachments(c, attachments)
		}
	}
	if typ == Code {
		return d.completeCode(c) || changed
	}
	for _, key := range []string{"execution_count", "outputs"} {
		if d.removeMember(c, key) {
			changed = true
		}
	}
	d.setMark(c, "")
	return changed
}

// completeCode adds the members that a code cell must have.
func (d *Document) completeCode(c *Cell) bool {
	if c.typ != Code {
		return false
	}
	changed := false
	if c.n.get("execution_count") == nil {
		d.setMember(c, "execution_count", newNull())
		changed = true
	}
	if c.n.get("outputs") == nil {
		d.setMember(c, "outputs", newArray())
		changed = true
	}
	return changed
}

// buildCell makes a cell for this document; it is not in the list yet.
func (d *Document) buildCell(spec NewCell, id string) (*Cell, error) {
	metadata, err := spec.metadata()
	if err != nil {
		return nil, err
	}
	members := []member{
		{"cell_type", newString(string(spec.Type))},
		{"metadata", metadata},
		{"source", newStrings(SplitLines(spec.Source))},
	}
	if spec.Type == Code {
		members = append(members, member{"execution_count", newNull()}, member{"outputs", newArray()})
	}
	if id != "" {
		members = append(members, member{"id", newString(id)})
	}
	n := sortedObject(members)
	d.orderLikeNeighbours(n, spec.Type)
	return &Cell{doc: d, n: d.style().layOut(n, cellLevel), typ: spec.Type}, nil
}

// orderLikeNeighbours puts the members of a new cell in the order that the
// document's first cell of the same type has them in. Members that it lacks
// keep their place in the alphabet when it is sorted, and go last otherwise.
func (d *Document) orderLikeNeighbours(n *node, typ CellType) {
	i := slices.IndexFunc(d.cells, func(c *Cell) bool { return c.typ == typ })
	if i < 0 {
		return
	}
	var order []string
	d.cells[i].n.each(func(_ int, key []byte, _ *node) bool {
		order = append(order, decodeString(key))
		return true
	})
	if slices.IsSorted(order) {
		return
	}
	rank := func(it item) int {
		if r := slices.Index(order, decodeString(it.key)); r >= 0 {
			return r
		}
		return len(order)
	}
	slices.SortStableFunc(n.items, func(a, b item) int { return rank(a) - rank(b) })
}

// freshIDNotIn makes an id that is not in used, and adds it there.
func (d *Document) freshIDNotIn(used map[string]bool) string {
	for range 100 {
		if d.NewID == nil {
			break
		}
		if id := d.NewID(); validID(id) && !used[id] {
			used[id] = true
			return id
		}
	}
	for {
		var b [4]byte
		// crypto/rand.Read never fails; it ends the program instead.
		_, _ = rand.Read(b[:])
		if id := hex.EncodeToString(b[:]); !used[id] {
			used[id] = true
			return id
		}
	}
}

// validID is nbformat 4.5's rule for cell ids: 1 to 64 characters of
// a-z A-Z 0-9 - _.
func validID(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	for _, c := range []byte(id) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}

func checkText(text string) error {
	if !utf8.ValidString(text) {
		return fault(ErrArgument, "the text is not UTF-8")
	}
	return nil
}

func checkType(t CellType) error {
	if !t.Valid() {
		return fault(ErrArgument, "cell type %s, expected code, markdown or raw", fmt.Sprintf("%q", string(t)))
	}
	return nil
}
