package notebook

import (
	"fmt"
	"strconv"
	"strings"
)

// Ref names a cell, by its place or by its id. The zero value is the first
// cell.
type Ref struct {
	index int
	id    string
}

// At refers to the cell at an index from 0; -1 is the last cell, -2 the one
// before it.
func At(index int) Ref { return Ref{index: index} }

// ByID refers to the cell with an id.
func ByID(id string) Ref { return Ref{id: id} }

// ParseRef reads a reference as a person writes it: a number is an index,
// "id:" and an id is an id even if it looks like a number, and anything else
// is an id.
func ParseRef(s string) (Ref, error) {
	if id, ok := strings.CutPrefix(s, "id:"); ok {
		s = id
	} else if i, err := strconv.Atoi(s); err == nil {
		return At(i), nil
	}
	if s == "" {
		return Ref{}, fault(ErrArgument, "an empty cell reference")
	}
	return ByID(s), nil
}

// String returns what ParseRef reads.
func (r Ref) String() string {
	if r.id != "" {
		return "id:" + r.id
	}
	return strconv.Itoa(r.index)
}

// Len returns how many cells there are.
func (d *Document) Len() int { return len(d.cells) }

// Cell returns the cell at an index from 0 to Len-1; it panics outside, as a
// slice does.
func (d *Document) Cell(i int) *Cell { return d.cells[i] }

// Cells returns all cells in order. The slice is the caller's.
func (d *Document) Cells() []*Cell { return append([]*Cell(nil), d.cells...) }

// Index returns the place of a cell, -1 when it is not (or no longer) in the
// document.
func (d *Document) Index(c *Cell) int {
	for i, have := range d.cells {
		if have == c {
			return i
		}
	}
	return -1
}

// Find returns the cell that ref names, or an error of kind ErrNoCell: out of
// range, an unknown id, or an id that several cells have.
func (d *Document) Find(ref Ref) (*Cell, error) {
	i, err := d.find(ref)
	if err != nil {
		return nil, err
	}
	return d.cells[i], nil
}

func (d *Document) find(ref Ref) (int, error) {
	if ref.id != "" {
		return d.findID(ref.id)
	}
	i := ref.index
	if i < 0 {
		i += len(d.cells)
	}
	if i < 0 || i >= len(d.cells) {
		return 0, fault(ErrNoCell, "%s", outOfRange("cell index", ref.index, len(d.cells)-1))
	}
	return i, nil
}

func (d *Document) findID(id string) (int, error) {
	found := -1
	for i, c := range d.cells {
		if c.ID() != id {
			continue
		}
		if found >= 0 {
			return 0, fault(ErrNoCell, "id %q names cells %d and %d", id, found, i)
		}
		found = i
	}
	if found < 0 {
		return 0, fault(ErrNoCell, "no cell has the id %q", id)
	}
	return found, nil
}

func outOfRange(what string, index, last int) string {
	if last < 0 {
		return fmt.Sprintf("%s %d out of range, the notebook has no cells", what, index)
	}
	return fmt.Sprintf("%s %d out of range (0-%d)", what, index, last)
}
