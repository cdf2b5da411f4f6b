package notebook

import (
	"encoding/json"
	"slices"
	"strings"
)

// Metadata returns the value under a path of names in the notebook's own
// metadata; an empty path is the whole. ok is false when there is nothing.
func (d *Document) Metadata(path ...string) (value json.RawMessage, ok bool) {
	return rawValue(d.root.get("metadata").at(path...))
}

// SetNotebookMetadata sets the value under a path of names in the notebook's
// metadata; objects on the way are made. value is anything encoding/json can
// marshal; a json.RawMessage keeps its spelling.
func (d *Document) SetNotebookMetadata(value any, path ...string) error {
	n, err := metadataValue(value, path)
	if err != nil {
		return err
	}
	if same(d.root.get("metadata").at(path...), n) {
		return nil
	}
	d.touch()
	setPath(d.root, n, d.style(), 0, append([]string{"metadata"}, path...))
	return nil
}

// RemoveNotebookMetadata removes what is under a path of names in the
// notebook's metadata and reports whether there was something.
func (d *Document) RemoveNotebookMetadata(path ...string) bool {
	if len(path) == 0 || d.root.get("metadata").at(path...) == nil {
		return false
	}
	d.touch()
	return removePath(d.root, d.style(), 0, append([]string{"metadata"}, path...))
}

// SetMetadata sets the value under a path of names in a cell's metadata, as
// [Document.SetNotebookMetadata] does.
func (d *Document) SetMetadata(ref Ref, value any, path ...string) error {
	c, err := d.Find(ref)
	if err != nil {
		return err
	}
	n, err := metadataValue(value, path)
	if err != nil {
		return err
	}
	if !same(c.n.get("metadata").at(path...), n) {
		d.setMetadata(c, n, path...)
	}
	return nil
}

// RemoveMetadata removes what is under a path of names in a cell's metadata
// and reports whether there was something.
func (d *Document) RemoveMetadata(ref Ref, path ...string) (bool, error) {
	c, err := d.Find(ref)
	if err != nil || len(path) == 0 {
		return false, err
	}
	return d.removeMetadata(c, path...), nil
}

// SetTags replaces a cell's tags. Tags are not empty, hold no comma and are
// not repeated (nbformat 4, "metadata_tags"); with no tags the member is
// removed.
func (d *Document) SetTags(ref Ref, tags ...string) error {
	c, err := d.Find(ref)
	if err != nil {
		return err
	}
	if err := checkTags(tags); err != nil {
		return err
	}
	if len(tags) == 0 {
		d.removeMetadata(c, "tags")
		return nil
	}
	if n := newStrings(tags); !same(c.n.at("metadata", "tags"), n) {
		d.setMetadata(c, n, "tags")
	}
	return nil
}

// AddTags adds the tags that a cell does not have yet.
func (d *Document) AddTags(ref Ref, tags ...string) error {
	c, err := d.Find(ref)
	if err != nil {
		return err
	}
	all := c.Tags()
	for _, tag := range tags {
		if !slices.Contains(all, tag) {
			all = append(all, tag)
		}
	}
	return d.SetTags(ref, all...)
}

// RemoveTags removes the tags from a cell that has them.
func (d *Document) RemoveTags(ref Ref, tags ...string) error {
	c, err := d.Find(ref)
	if err != nil {
		return err
	}
	all := c.Tags()
	kept := slices.DeleteFunc(slices.Clone(all), func(t string) bool { return slices.Contains(tags, t) })
	if len(kept) == len(all) {
		return nil
	}
	return d.SetTags(ref, kept...)
}

func checkTags(tags []string) error {
	for i, tag := range tags {
		switch {
		case tag == "":
			return fault(ErrArgument, "a tag is empty")
		case strings.Contains(tag, ","):
			return fault(ErrArgument, "tag %q holds a comma", tag)
		case slices.Contains(tags[:i], tag):
			return fault(ErrArgument, "tag %q is repeated", tag)
		}
	}
	return nil
}

func metadataValue(value any, path []string) (*node, error) {
	n, err := newValue(value)
	if err != nil {
		return nil, &Error{Kind: ErrArgument, Reason: "metadata value", Err: err}
	}
	if len(path) == 0 && n.kind() != kindObject {
		return nil, fault(ErrArgument, "metadata is an object, not %s", n.kind())
	}
	return n, nil
}

// same reports whether two values are equal: the same type and the same
// content, with members in any order and white space of no account.
func same(a, b *node) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.open == 0 && b.open == 0 && string(a.raw) == string(b.raw) {
		return true
	}
	if a.kind() != b.kind() {
		return false
	}
	switch a.kind() {
	case kindString:
		x, _ := a.str()
		y, _ := b.str()
		return x == y
	case kindNumber:
		return string(a.raw) == string(b.raw)
	case kindArray, kindObject:
	default:
		return true
	}
	x, y := children(a), children(b)
	if len(x) != len(y) {
		return false
	}
	if a.kind() == kindArray {
		return slices.EqualFunc(x, y, func(p, q item) bool { return same(p.val, q.val) })
	}
	for _, it := range x {
		if !same(it.val, b.get(decodeString(it.key))) {
			return false
		}
	}
	return true
}

func children(n *node) []item {
	if n.open != 0 {
		return n.items
	}
	var items []item
	n.each(func(_ int, key []byte, v *node) bool {
		items = append(items, item{key: key, val: v})
		return true
	})
	return items
}

func (d *Document) setMetadata(c *Cell, val *node, path ...string) {
	d.touch()
	setPath(c.n, val, d.style(), cellLevel, append([]string{"metadata"}, path...))
}

func (d *Document) removeMetadata(c *Cell, path ...string) bool {
	if c.n.get("metadata").at(path...) == nil {
		return false
	}
	d.touch()
	return removePath(c.n, d.style(), cellLevel, append([]string{"metadata"}, path...))
}

// setPath sets a value under n, an object whose brackets are at the given
// level. What is on the way and no object is replaced by one.
func setPath(n *node, val *node, st *style, level int, path []string) {
	n.expand()
	if len(path) == 1 {
		n.setMember(path[0], val, st, level)
		return
	}
	if next := n.get(path[0]); next == nil || next.kind() != kindObject {
		n.setMember(path[0], newObject(), st, level)
	}
	setPath(n.get(path[0]), val, st, level+1, path[1:])
}

func removePath(n *node, st *style, level int, path []string) bool {
	for ; len(path) > 1; path = path[1:] {
		n = n.expand().get(path[0])
		level++
	}
	return n.expand().removeMember(path[0], st, level)
}
