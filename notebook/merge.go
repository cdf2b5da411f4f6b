package notebook

import (
	"fmt"
	"slices"
)

// MergeOptions name the two sides in conflict markers.
type MergeOptions struct {
	// Ours and Theirs are "ours" and "theirs" when empty.
	Ours, Theirs string
}

// Conflict is something that both sides changed in different ways.
type Conflict struct {
	// Cell is the index of the cell in the merged notebook; -1 for the notebook
	// itself.
	Cell int
	// What is "source", "deleted", or the path of a member such as
	// "metadata.tags".
	What string
	// Kept says what the merged notebook has: "both" for sources with conflict
	// markers, else "ours" or "theirs".
	Kept string
}

// String returns the conflict as a sentence for a person.
func (c Conflict) String() string {
	where := "notebook"
	if c.Cell >= 0 {
		where = fmt.Sprintf("cell %d", c.Cell)
	}
	return fmt.Sprintf("%s: %s (kept %s)", where, c.What, c.Kept)
}

// Merge makes one notebook of two that were edited apart from the same base.
// The result is new; it is laid out like ours.
//
// Cells are matched as in [Diff]. What one side changed is taken from it. Both
// changed:
//   - the source: the lines are merged; where they collide, the source gets
//     conflict markers (<<<<<<<, =======, >>>>>>>);
//   - one deleted the cell and the other changed it: the changed cell stays;
//   - metadata, attachments and members unknown here: member by member, ours
//     where they collide;
//   - outputs and execution_count: they come from the side whose source the
//     cell has, ours if both have it. That is no conflict. A source that is of
//     neither side leaves ours, under Document.Stale of ours.
//   - the order of cells: ours.
//
// Cells that both sides added at one place stand one after the other, ours
// first; equal ones are one. opts may be nil.
func Merge(base, ours, theirs *Document, opts *MergeOptions) (*Document, []Conflict) {
	m := newMerger(base, ours, theirs, opts)
	var cells []*Cell
	for _, e := range m.order() {
		if c := m.resolve(e, len(cells)); c != nil {
			cells = append(cells, c)
		}
	}
	m.uniqueIDs(cells)
	m.doc.setCells(cells)
	m.notebook()
	return m.doc, m.conflicts
}

// entity is a cell as the three notebooks have it: its indices there, -1
// where it does not exist.
type entity struct{ base, ours, theirs int }

type merger struct {
	base, ours, theirs *Document
	// doc is the result: a clone of ours. Cell i of ours is oursCells[i] in it.
	doc       *Document
	oursCells []*Cell
	relayout  bool // theirs is laid out in another style
	labels    [2]string
	conflicts []Conflict
	entities  map[side]*entity
}

// side names a cell of one of the notebooks, which may be one document.
type side struct {
	of    version
	index int
}

type version int

const (
	inBase version = iota
	inOurs
	inTheirs
)

func newMerger(base, ours, theirs *Document, opts *MergeOptions) *merger {
	m := &merger{base: base, ours: ours, theirs: theirs, doc: ours.Clone(), labels: [2]string{"ours", "theirs"}}
	if opts != nil && opts.Ours != "" {
		m.labels[0] = opts.Ours
	}
	if opts != nil && opts.Theirs != "" {
		m.labels[1] = opts.Theirs
	}
	if theirs.minor > m.doc.minor && theirs.hasIDs() {
		m.doc.Upgrade()
	}
	m.oursCells = slices.Clone(m.doc.cells)
	m.relayout = *ours.style() != *theirs.style()
	m.match()
	return m
}

// match finds which cells of the three notebooks are the same one.
func (m *merger) match() {
	m.entities = make(map[side]*entity)
	for i := range m.base.cells {
		m.entities[side{inBase, i}] = &entity{i, -1, -1}
	}
	sb, so, st := sketches(m.base.cells), sketches(m.ours.cells), sketches(m.theirs.cells)
	for _, p := range align(sb, so) {
		e := m.entities[side{inBase, p.a}]
		e.ours = p.b
		m.entities[side{inOurs, p.b}] = e
	}
	for _, p := range align(sb, st) {
		e := m.entities[side{inBase, p.a}]
		e.theirs = p.b
		m.entities[side{inTheirs, p.b}] = e
	}
	// A cell that both sides added, with the same id or the same content, is
	// one cell.
	var addedOurs, addedTheirs []sketch
	var atOurs, atTheirs []int
	for i, s := range so {
		if m.entities[side{inOurs, i}] == nil {
			addedOurs, atOurs = append(addedOurs, s), append(atOurs, i)
			m.entities[side{inOurs, i}] = &entity{-1, i, -1}
		}
	}
	for i, s := range st {
		if m.entities[side{inTheirs, i}] == nil {
			addedTheirs, atTheirs = append(addedTheirs, s), append(atTheirs, i)
			m.entities[side{inTheirs, i}] = &entity{-1, -1, i}
		}
	}
	for _, p := range align(addedOurs, addedTheirs) {
		a, b := addedOurs[p.a], addedTheirs[p.b]
		if a.typ == b.typ && (a.source == b.source || a.id != "" && a.id == b.id) {
			e := m.entities[side{inOurs, atOurs[p.a]}]
			e.theirs = atTheirs[p.b]
			m.entities[side{inTheirs, atTheirs[p.b]}] = e
		}
	}
}

// order returns all cells in the order of the result. It is the order of ours,
// or of theirs if only they moved cells; the cells that only the other side
// has come after the cell that they follow there.
func (m *merger) order() []*entity {
	first, second := inOurs, inTheirs
	if !m.moved(inOurs) && m.moved(inTheirs) {
		first, second = second, first
	}
	var out []*entity
	in := make(map[*entity]bool)
	for i := range m.count(first) {
		e := m.entities[side{first, i}]
		out = append(out, e)
		in[e] = true
	}
	after := 0 // where the next cell of second is put
	for i := range m.count(second) {
		e := m.entities[side{second, i}]
		if in[e] {
			after = slices.Index(out, e) + 1
			continue
		}
		// What first added here stays in front, as does what was put already.
		for e.base < 0 && after < len(out) && out[after].base < 0 {
			after++
		}
		out = slices.Insert(out, after, e)
		in[e] = true
		after++
	}
	return out
}

// moved reports whether a side changed the order of the base's cells.
func (m *merger) moved(v version) bool {
	last := -1
	for i := range m.count(v) {
		if b := m.entities[side{v, i}].base; b >= 0 {
			if b < last {
				return true
			}
			last = b
		}
	}
	return false
}

func (m *merger) count(v version) int {
	if v == inOurs {
		return len(m.ours.cells)
	}
	return len(m.theirs.cells)
}

// resolve returns the cell of the result, nil when it is deleted.
func (m *merger) resolve(e *entity, index int) *Cell {
	switch {
	case e.theirs < 0 && e.base < 0:
		return m.oursCells[e.ours]
	case e.ours < 0 && e.base < 0:
		return m.adopt(m.theirs.cells[e.theirs])
	case e.ours < 0 && e.theirs < 0:
		return nil
	case e.theirs < 0:
		if _, differs := compareCells(m.base.cells[e.base], m.ours.cells[e.ours]); !differs {
			return nil
		}
		m.conflict(index, "deleted", "ours")
		return m.oursCells[e.ours]
	case e.ours < 0:
		if _, differs := compareCells(m.base.cells[e.base], m.theirs.cells[e.theirs]); !differs {
			return nil
		}
		m.conflict(index, "deleted", "theirs")
		return m.adopt(m.theirs.cells[e.theirs])
	case e.base < 0:
		return m.mergeCell(m.oursCells[e.ours], nil, m.theirs.cells[e.theirs], index)
	}
	b, o, t := m.base.cells[e.base], m.ours.cells[e.ours], m.theirs.cells[e.theirs]
	if _, differs := compareCells(b, t); !differs {
		return m.oursCells[e.ours]
	}
	if _, differs := compareCells(b, o); !differs {
		return m.adopt(t)
	}
	return m.mergeCell(m.oursCells[e.ours], b, t, index)
}

func (m *merger) conflict(cell int, what, kept string) {
	m.conflicts = append(m.conflicts, Conflict{Cell: cell, What: what, Kept: kept})
}

// adopt makes a cell of theirs one of the result.
func (m *merger) adopt(c *Cell) *Cell {
	n := c.n.clone()
	if m.relayout {
		n = m.doc.style().layOut(n, cellLevel)
	}
	return &Cell{doc: m.doc, n: n, typ: c.typ}
}

// uniqueIDs gives new ids to cells of theirs whose id is in use, and to cells
// that have none; it takes ids away where the nbformat has none. Ids of ours
// stay.
func (m *merger) uniqueIDs(cells []*Cell) {
	used := make(map[string]bool, len(cells))
	isOurs := make(map[*Cell]bool, len(cells))
	for _, c := range m.oursCells {
		isOurs[c] = true
	}
	for _, c := range cells {
		if isOurs[c] {
			used[c.ID()] = true
		}
	}
	for _, c := range cells {
		id := c.ID()
		switch {
		case !m.doc.hasIDs():
			m.doc.removeMember(c, "id")
		case id == "" || used[id] && !isOurs[c]:
			m.doc.setMember(c, "id", newString(m.doc.freshIDNotIn(used)))
		default:
			used[id] = true
		}
	}
}
