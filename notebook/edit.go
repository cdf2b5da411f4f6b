package notebook

import (
	"encoding/json"
	"slices"
	"strings"
)

// NewCell describes a cell to be made.
type NewCell struct {
	// Type is code when empty.
	Type   CellType
	Source string
	// ID is made up when empty. It must be unused, and empty for a notebook
	// before nbformat 4.5, which has no ids.
	ID string
	// Metadata is a JSON object; nil is an empty one.
	Metadata json.RawMessage
	// Tags are added to Metadata.
	Tags []string
}

func (spec NewCell) metadata() (*node, error) {
	if len(spec.Metadata) == 0 && len(spec.Tags) == 0 {
		return newObject(), nil
	}
	n := newObject()
	if len(spec.Metadata) > 0 {
		parsed, err := metadataValue(spec.Metadata, nil)
		if err != nil {
			return nil, err
		}
		n = parsed.expand()
	}
	if len(spec.Tags) > 0 {
		if err := checkTags(spec.Tags); err != nil {
			return nil, err
		}
		n.setMember("tags", newStrings(spec.Tags), defaultStyle(), 0)
	}
	return n, nil
}

// Insert puts new cells before the cell at an index from 0 to Len; Len
// appends. It returns them in order, or changes nothing.
func (d *Document) Insert(index int, specs ...NewCell) ([]*Cell, error) {
	if index < 0 || index > len(d.cells) {
		return nil, fault(ErrNoCell, "%s", outOfRange("insert index", index, len(d.cells)))
	}
	used := d.usedIDs()
	added := make([]*Cell, 0, len(specs))
	for _, spec := range specs {
		c, err := d.newCell(spec, used)
		if err != nil {
			return nil, err
		}
		added = append(added, c)
	}
	d.setCells(slices.Insert(slices.Clone(d.cells), index, added...))
	return added, nil
}

// Append adds new cells at the end.
func (d *Document) Append(specs ...NewCell) ([]*Cell, error) {
	return d.Insert(len(d.cells), specs...)
}

func (d *Document) usedIDs() map[string]bool {
	used := make(map[string]bool, len(d.cells))
	if d.hasIDs() {
		for _, c := range d.cells {
			used[c.ID()] = true
		}
	}
	return used
}

func (d *Document) newCell(spec NewCell, used map[string]bool) (*Cell, error) {
	if spec.Type == "" {
		spec.Type = Code
	}
	if err := checkType(spec.Type); err != nil {
		return nil, err
	}
	if err := checkText(spec.Source); err != nil {
		return nil, err
	}
	id := spec.ID
	switch {
	case !d.hasIDs() && id != "":
		return nil, fault(ErrArgument, "cells of nbformat 4.%d have no id", d.minor)
	case !d.hasIDs():
	case id == "":
		id = d.freshIDNotIn(used)
	case !validID(id):
		return nil, fault(ErrArgument, "cell id %q is not 1 to 64 characters of a-z A-Z 0-9 - _", id)
	case used[id]:
		return nil, fault(ErrArgument, "cell id %q is in use", id)
	}
	used[id] = true
	return d.buildCell(spec, id)
}

// SetSource replaces a cell's text and reports whether it was another one.
// What becomes of outputs is up to Document.Stale.
func (d *Document) SetSource(ref Ref, text string) (changed bool, err error) {
	c, err := d.Find(ref)
	if err != nil {
		return false, err
	}
	if err := checkText(text); err != nil {
		return false, err
	}
	return d.setSource(c, text), nil
}

// SetType changes a cell's type and reports whether it was another one. A
// cell that becomes code gets execution_count and outputs, and keeps its
// attachments in its metadata, since nbformat has no place for them in code; one that
// becomes markdown or raw gets those back, and loses execution_count and outputs. Id,
// metadata and source stay.
func (d *Document) SetType(ref Ref, typ CellType) (changed bool, err error) {
	c, err := d.Find(ref)
	if err != nil {
		return false, err
	}
	if err := checkType(typ); err != nil {
		return false, err
	}
	if c.typ == typ {
		return false, nil
	}
	return d.setType(c, typ), nil
}

// Delete removes cells. A cell named twice is removed once; if one cannot be
// found, nothing is removed.
func (d *Document) Delete(refs ...Ref) error {
	drop := make(map[*Cell]bool, len(refs))
	for _, ref := range refs {
		c, err := d.Find(ref)
		if err != nil {
			return err
		}
		drop[c] = true
	}
	d.setCells(slices.DeleteFunc(slices.Clone(d.cells), func(c *Cell) bool { return drop[c] }))
	return nil
}

// Move puts a cell at an index, counted after it was taken out: 0 makes it the
// first, Len-1 the last.
func (d *Document) Move(ref Ref, to int) error {
	from, err := d.find(ref)
	if err != nil {
		return err
	}
	if to < 0 || to >= len(d.cells) {
		return fault(ErrNoCell, "%s", outOfRange("target index", to, len(d.cells)-1))
	}
	cells := slices.Clone(d.cells)
	c := cells[from]
	cells = slices.Delete(cells, from, from+1)
	d.setCells(slices.Insert(cells, to, c))
	return nil
}

// Split cuts a cell before a line, counted from 1 within its source; line 2
// leaves one line in the cell. The cell keeps its id, metadata and outputs and
// the lines before the cut, without the newline at the cut; a new cell of the
// same type and metadata gets the others. It is returned.
func (d *Document) Split(ref Ref, line int) (*Cell, error) {
	i, err := d.find(ref)
	if err != nil {
		return nil, err
	}
	c := d.cells[i]
	lines := SplitLines(c.Source())
	if line < 2 || line > len(lines) {
		return nil, fault(ErrArgument, "cannot split before line %d of a cell with %d lines", line, len(lines))
	}
	metadata, _ := c.Metadata()
	added, err := d.Insert(i+1, NewCell{Type: c.typ, Source: strings.Join(lines[line-1:], ""), Metadata: metadata})
	if err != nil {
		return nil, err
	}
	d.setMark(added[0], "")
	d.removeMetadata(added[0], "execution")
	if attachments := c.n.get("attachments"); attachments != nil && c.typ != Code {
		d.setMember(added[0], "attachments", attachments.clone())
	}
	d.setSource(c, strings.TrimSuffix(strings.Join(lines[:line-1], ""), "\n"))
	return added[0], nil
}

// Join merges the count cells that begin with ref into the first of them,
// which keeps its type, id and metadata. The sources are joined with a
// newline, so that Join undoes Split. Outputs of code cells are put together
// in order, and attachments too, of which the first of a name stays; where the first
// cell is code they are kept in its metadata.
func (d *Document) Join(ref Ref, count int) (*Cell, error) {
	i, err := d.find(ref)
	if err != nil {
		return nil, err
	}
	if count < 2 || i+count > len(d.cells) {
		return nil, fault(ErrArgument, "cannot join %d cells from cell %d of %d", count, i, len(d.cells))
	}
	first, rest := d.cells[i], d.cells[i+1:i+count]
	sources := []string{first.Source()}
	for _, c := range rest {
		sources = append(sources, c.Source())
		d.joinParts(first, c)
	}
	d.setSource(first, strings.Join(sources, "\n"))
	d.setCells(slices.Delete(slices.Clone(d.cells), i+1, i+count))
	return first, nil
}

// joinParts moves the outputs and attachments of c into first.
func (d *Document) joinParts(first, c *Cell) {
	if first.typ == Code && c.OutputCount() > 0 {
		all := newArray()
		for _, part := range []*Cell{first, c} {
			if outputs := part.n.get("outputs"); outputs != nil && outputs.kind() == kindArray {
				all.items = append(all.items, children(outputs.clone())...)
			}
		}
		d.setMember(first, "outputs", all)
	}
	if attachments := c.attachments(); attachments != nil {
		all := newObject()
		if have := first.attachments(); have != nil {
			all = have.expand()
		}
		attachments.each(func(_ int, key []byte, v *node) bool {
			if name := decodeString(key); all.get(name) == nil {
				all.setMember(name, v.clone(), d.style(), cellLevel+1)
			}
			return true
		})
		d.setAttachments(first, all)
	}
}
