package notebook

import (
	"slices"
	"strings"
)

// mergeCell merges what both sides made of a cell into c, which is ours in the
// result. base is nil when both added the cell.
func (m *merger) mergeCell(c, base, theirs *Cell, index int) *Cell {
	var b *node
	was, wasType := "", CellType("")
	if base != nil {
		b, was, wasType = base.n, base.Source(), base.typ
	}
	oursType, oursSource := c.typ, c.Source()
	switch {
	case c.typ == theirs.typ || theirs.typ == wasType:
	case c.typ == wasType:
		m.doc.setType(c, theirs.typ)
	default:
		m.conflict(index, "cell_type", "ours")
	}
	source, collided := mergeText(was, oursSource, theirs.Source(), m.labels)
	if collided {
		m.conflict(index, "source", "both")
	}
	if m.takesTheirOutputs(b, c, theirs, oursType, source) {
		for _, key := range []string{"outputs", "execution_count"} {
			if v := theirs.n.get(key); v != nil {
				m.doc.setMember(c, key, m.laidOut(v, cellLevel+1))
			}
		}
		// They are what the merged source made: no mark, no clearing.
		defer func(p StalePolicy) { m.doc.Stale = p }(m.doc.Stale)
		m.doc.Stale = StaleKeep
	}
	m.doc.setSource(c, source)
	skip := []string{"cell_type", "source", "outputs", "execution_count", "id"}
	if c.typ == Code {
		skip = append(skip, "attachments")
	}
	m.mergeMembers(c, b, theirs.n, skip, index)
	return c
}

// takesTheirOutputs says which side's outputs go with the merged source.
func (m *merger) takesTheirOutputs(b *node, c, theirs *Cell, oursType CellType, source string) bool {
	if c.typ != Code || theirs.typ != Code {
		return false
	}
	if oursType != Code {
		return true
	}
	if c.Source() != source {
		return theirs.Source() == source
	}
	if theirs.Source() != source || b == nil {
		return false
	}
	return sameContent(b.get("outputs"), c.n.get("outputs")) && same(b.get("execution_count"), c.n.get("execution_count"))
}

func (m *merger) laidOut(n *node, level int) *node {
	n = n.clone()
	if m.relayout {
		return m.doc.style().layOut(n, level)
	}
	return n
}

// mergeMembers merges the other members of a cell.
func (m *merger) mergeMembers(c *Cell, base, theirs *node, skip []string, index int) {
	for _, name := range memberNames(c.n, theirs) {
		if slices.Contains(skip, name) {
			continue
		}
		val, changed := m.mergeValue(base.get(name), c.n.get(name), theirs.get(name), index, name)
		switch {
		case !changed:
		case val == nil:
			m.doc.removeMember(c, name)
		default:
			m.doc.setMember(c, name, val)
		}
	}
}

// memberNames returns the names that either object has.
func memberNames(a, b *node) []string {
	var names []string
	for _, n := range []*node{a, b} {
		if n == nil {
			continue
		}
		n.each(func(_ int, key []byte, _ *node) bool {
			if name := decodeString(key); !slices.Contains(names, name) {
				names = append(names, name)
			}
			return true
		})
	}
	return names
}

// mergeValue merges any value by its place; nil is a value that is not there.
// changed is false when the result is ours as it is.
func (m *merger) mergeValue(base, ours, theirs *node, index int, path string) (val *node, changed bool) {
	switch {
	case same(ours, theirs), same(base, theirs):
		return ours, false
	case same(base, ours):
		if theirs == nil {
			return nil, true
		}
		return theirs.clone(), true
	}
	if ours == nil || theirs == nil || ours.kind() != kindObject || theirs.kind() != kindObject {
		m.conflict(index, path, "ours")
		return ours, false
	}
	merged := ours.clone().expand()
	for _, name := range memberNames(ours, theirs) {
		v, differs := m.mergeValue(base.get(name), ours.get(name), theirs.get(name), index, path+"."+name)
		switch {
		case !differs:
		case v == nil:
			merged.removeMember(name, m.doc.style(), 0)
			changed = true
		default:
			merged.setMember(name, v, m.doc.style(), 0)
			changed = true
		}
	}
	return merged, changed
}

// notebook merges the metadata of the notebook and the members beside it.
func (m *merger) notebook() {
	d := m.doc
	for _, name := range memberNames(m.ours.root, m.theirs.root) {
		if name == "cells" || name == "nbformat" || name == "nbformat_minor" {
			continue
		}
		val, changed := m.mergeValue(m.base.root.get(name), d.root.get(name), m.theirs.root.get(name), -1, name)
		switch {
		case !changed:
		case val == nil:
			d.touch()
			d.root.removeMember(name, d.style(), 0)
		default:
			d.touch()
			d.root.setMember(name, val, d.style(), 0)
		}
	}
}

// mergeText merges two edits of a text line by line. Lines that both sides
// changed in different ways stand one after the other between markers.
func mergeText(base, ours, theirs string, labels [2]string) (merged string, collided bool) {
	switch {
	case ours == theirs, theirs == base:
		return ours, false
	case ours == base:
		return theirs, false
	}
	b, o, t := strings.Split(base, "\n"), strings.Split(ours, "\n"), strings.Split(theirs, "\n")
	placeO, placeT := matches(b, o), matches(b, t)
	var out []string
	fromB, fromO, fromT := 0, 0, 0
	for i := 0; i <= len(b); i++ {
		if i < len(b) && (placeO[i] < 0 || placeT[i] < 0) {
			continue
		}
		// Line i is in all three: what stands before it is a chunk to decide.
		endO, endT := len(o), len(t)
		if i < len(b) {
			endO, endT = placeO[i], placeT[i]
		}
		chunk, bad := mergeChunk(b[fromB:i], o[fromO:endO], t[fromT:endT], labels)
		out = append(out, chunk...)
		collided = collided || bad
		if i < len(b) {
			out = append(out, b[i])
		}
		fromB, fromO, fromT = i+1, endO+1, endT+1
	}
	return strings.Join(out, "\n"), collided
}

func mergeChunk(b, o, t []string, labels [2]string) (lines []string, collided bool) {
	switch {
	case slices.Equal(o, t), slices.Equal(b, t):
		return o, false
	case slices.Equal(b, o):
		return t, false
	}
	lines = append(lines, "<<<<<<< "+labels[0])
	lines = append(append(lines, o...), "=======")
	return append(append(lines, t...), ">>>>>>> "+labels[1]), true
}

// matches returns for each line of a its place in b, -1 for none.
func matches(a, b []string) []int {
	m := make([]int, len(a))
	for i := range m {
		m[i] = -1
	}
	for _, p := range lcs(a, b) {
		m[p.a] = p.b
	}
	return m
}
