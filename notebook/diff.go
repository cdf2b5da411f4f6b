package notebook

import (
	"fmt"
	"slices"
	"strings"
)

// CellChange is how one cell differs between two notebooks.
type CellChange struct {
	// Old and New are the cell's indices, -1 where it does not exist.
	Old, New int
	// Type is the cell's type, in the new notebook if it is there. OldType is
	// what it was, if that is another.
	Type, OldType CellType
	// ID is the cell's id, in the new notebook if it is there.
	ID string
	// Source, Outputs, Count, Metadata, Attachments and IDChanged tell what
	// differs in a cell that both have; Moved tells that it stands elsewhere
	// among the cells that both have.
	Source, Outputs, Count, Metadata, Attachments, IDChanged, Moved bool
	// Lines compares the sources; it is empty when they are equal.
	Lines []DiffLine
}

// DiffLine is a line of a comparison.
type DiffLine struct {
	// Op is ' ' for a line that both have, '-' for one that only the old text
	// has, '+' for one that only the new text has.
	Op byte
	// Text is the line without its newline.
	Text string
	// NoNewline says that the text ends with this line and without a newline.
	NoNewline bool
}

// Difference is what changed from one notebook to another.
type Difference struct {
	// Cells are the cells that differ, in the order of the new notebook; a
	// deleted cell stands before the cells that come after it.
	Cells []CellChange
	// Metadata names the members of the notebook's metadata that differ.
	Metadata []string
	// Version says that the nbformat differs.
	Version bool
}

// Empty reports whether the notebooks are equal: in everything but layout.
func (d *Difference) Empty() bool {
	return len(d.Cells) == 0 && len(d.Metadata) == 0 && !d.Version
}

// Diff compares two notebooks cell by cell. Cells are matched by id where both
// have it, and by type and source otherwise.
func Diff(before, after *Document) *Difference {
	diff := &Difference{
		Metadata: changedMembers(before.root.get("metadata"), after.root.get("metadata")),
		Version:  before.minor != after.minor || before.from != after.from,
	}
	pairs := align(sketches(before.cells), sketches(after.cells))
	was := make([]int, len(after.cells)) // index before, -1 for new
	for i := range was {
		was[i] = -1
	}
	isNow := make(map[int]bool, len(pairs))
	for _, p := range pairs {
		was[p.b] = p.a
		isNow[p.a] = true
	}
	var seq []int
	for _, p := range was {
		if p >= 0 {
			seq = append(seq, p)
		}
	}
	stayed := increasing(seq)
	next, nth := 0, 0 // next cell of before whose deletion is to be told
	deleted := func(until int) {
		for ; next < until; next++ {
			if !isNow[next] {
				diff.Cells = append(diff.Cells, removedCell(before, next))
			}
		}
	}
	for i, p := range was {
		if p < 0 {
			diff.Cells = append(diff.Cells, addedCell(after, i))
			continue
		}
		moved := !stayed[nth]
		nth++
		if !moved {
			deleted(p)
		}
		if change, differs := compareCells(before.cells[p], after.cells[i]); differs || moved {
			change.Old, change.New, change.Moved = p, i, moved
			diff.Cells = append(diff.Cells, change)
		}
	}
	deleted(len(before.cells))
	return diff
}

func removedCell(d *Document, i int) CellChange {
	c := d.cells[i]
	return CellChange{Old: i, New: -1, Type: c.typ, ID: c.ID(), Lines: DiffLines(c.Source(), "")}
}

func addedCell(d *Document, i int) CellChange {
	c := d.cells[i]
	return CellChange{Old: -1, New: i, Type: c.typ, ID: c.ID(), Lines: DiffLines("", c.Source())}
}

func compareCells(a, b *Cell) (CellChange, bool) {
	change := CellChange{Type: b.typ, ID: b.ID()}
	if a.typ != b.typ {
		change.OldType = a.typ
	}
	if x, y := a.Source(), b.Source(); x != y {
		change.Source, change.Lines = true, DiffLines(x, y)
	}
	change.Outputs = !sameContent(a.n.get("outputs"), b.n.get("outputs"))
	change.Count = !same(a.n.get("execution_count"), b.n.get("execution_count"))
	change.Metadata = !same(a.n.get("metadata"), b.n.get("metadata"))
	change.Attachments = !sameContent(a.n.get("attachments"), b.n.get("attachments"))
	change.IDChanged = a.ID() != b.ID()
	return change, change.OldType != "" || change.Source || change.Outputs || change.Count || change.Metadata ||
		change.Attachments || change.IDChanged
}

// sameContent compares outputs or attachments: as same does, but a list of
// lines equals its text, which is how nbformat means it everywhere outside of
// metadata and JSON data.
func sameContent(a, b *node) bool {
	if same(a, b) {
		return true
	}
	if a == nil || b == nil {
		return false
	}
	if isMultiline(a) && isMultiline(b) {
		return a.multiline() == b.multiline()
	}
	if a.kind() != b.kind() || a.length() != b.length() {
		return false
	}
	switch a.kind() {
	case kindObject:
		equal := true
		a.each(func(_ int, key []byte, v *node) bool {
			name := decodeString(key)
			if name == "metadata" || name == "traceback" || isJSONType(name) {
				equal = same(v, b.get(name))
			} else {
				equal = sameContent(v, b.get(name))
			}
			return equal
		})
		return equal
	case kindArray:
		return slices.EqualFunc(children(a), children(b), func(p, q item) bool { return sameContent(p.val, q.val) })
	}
	return false
}

// changedMembers returns the names of the members that differ between two
// objects, those of a first.
func changedMembers(a, b *node) []string {
	var names []string
	if a != nil {
		a.each(func(_ int, key []byte, v *node) bool {
			if name := decodeString(key); !same(v, b.get(name)) {
				names = append(names, name)
			}
			return true
		})
	}
	if b != nil {
		b.each(func(_ int, key []byte, _ *node) bool {
			if name := decodeString(key); a.get(name) == nil {
				names = append(names, name)
			}
			return true
		})
	}
	return names
}

// DiffLines compares two texts line by line. Equal texts give nothing.
func DiffLines(before, after string) []DiffLine {
	if before == after {
		return nil
	}
	a, b := SplitLines(before), SplitLines(after)
	var out []DiffLine
	put := func(op byte, line string) {
		text, ended := strings.CutSuffix(line, "\n")
		out = append(out, DiffLine{Op: op, Text: text, NoNewline: !ended})
	}
	i, j := 0, 0
	for _, p := range append(lcs(a, b), pair{len(a), len(b)}) {
		for ; i < p.a; i++ {
			put('-', a[i])
		}
		for ; j < p.b; j++ {
			put('+', b[j])
		}
		if i < len(a) {
			put(' ', a[i])
			i++
			j++
		}
	}
	return out
}

// String returns the difference as text: one heading a cell, and the lines of
// sources that changed. Equal notebooks give an empty text.
func (d *Difference) String() string {
	var b strings.Builder
	if d.Version {
		b.WriteString("~ nbformat\n")
	}
	if len(d.Metadata) > 0 {
		fmt.Fprintf(&b, "~ metadata: %s\n", strings.Join(d.Metadata, ", "))
	}
	for _, c := range d.Cells {
		b.WriteString(c.heading() + "\n")
		for _, l := range c.Lines {
			b.WriteString("  " + strings.TrimRight(string(l.Op)+" "+l.Text, " ") + "\n")
		}
	}
	return b.String()
}

func (c CellChange) heading() string {
	switch {
	case c.Old < 0:
		return fmt.Sprintf("+ [%s] cell:%d", c.Type, c.New)
	case c.New < 0:
		return fmt.Sprintf("- [%s] cell:%d", c.Type, c.Old)
	}
	var what []string
	add := func(is bool, name string) {
		if is {
			what = append(what, name)
		}
	}
	add(c.Moved, fmt.Sprintf("moved from %d", c.Old))
	add(c.OldType != "", "was "+string(c.OldType))
	add(c.Source, "source")
	add(c.Outputs, "outputs")
	add(c.Count, "execution_count")
	add(c.Metadata, "metadata")
	add(c.Attachments, "attachments")
	add(c.IDChanged, "id")
	return fmt.Sprintf("~ [%s] cell:%d %s", c.Type, c.New, strings.Join(what, ", "))
}
