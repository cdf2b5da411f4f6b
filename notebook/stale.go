package notebook

import (
	"crypto/sha256"
	"encoding/hex"
)

// StalePolicy says what becomes of the outputs of a code cell whose source is
// edited. They are then stale: they were made by other code.
type StalePolicy int

const (
	// StaleMark keeps the outputs and marks the cell: metadata.coppice
	// .outputs_of holds a digest of the source that made them. The mark goes
	// away when the source is what it was, or new outputs are set.
	StaleMark StalePolicy = iota
	// StaleClear removes the outputs and sets execution_count to null.
	StaleClear
	// StaleKeep keeps the outputs and writes no mark.
	StaleKeep
)

// The member of a cell's metadata under which this package keeps its mark, beside
// attachmentsKey.
const (
	markSpace = "coppice"
	markKey   = "outputs_of"
)

// Stale reports whether the cell has outputs that an earlier source made. It
// knows of edits under [StaleMark] only.
func (c *Cell) Stale() bool {
	mark, ok := c.n.at("metadata", markSpace, markKey).str()
	return ok && c.typ == Code && c.OutputCount() > 0 && mark != digest(c.Source())
}

func digest(source string) string {
	sum := sha256.Sum256([]byte(source))
	return hex.EncodeToString(sum[:8])
}

// sourceChanged applies the policy to a cell whose source was another one.
func (d *Document) sourceChanged(c *Cell, was string) {
	if c.typ != Code {
		return
	}
	switch d.Stale {
	case StaleClear:
		d.clearOutputs(c)
	case StaleMark:
		mark, marked := c.n.at("metadata", markSpace, markKey).str()
		if !marked {
			mark = digest(was)
		}
		if c.OutputCount() == 0 || mark == digest(c.Source()) {
			mark = ""
		}
		d.setMark(c, mark)
	}
}

// setMark sets the mark of a cell, or removes it when mark is empty.
func (d *Document) setMark(c *Cell, mark string) {
	if mark != "" {
		d.setMetadata(c, newString(mark), markSpace, markKey)
		return
	}
	d.removeMark(c, markKey)
}

// removeMark removes what this package keeps in a cell's metadata under a key, together
// with the object that held it if nothing else is in there.
func (d *Document) removeMark(c *Cell, key string) {
	if d.removeMetadata(c, markSpace, key) {
		if space := c.n.at("metadata", markSpace); space.kind() == kindObject && space.length() == 0 {
			d.removeMetadata(c, markSpace)
		}
	}
}

// clearOutputs empties a code cell's outputs, its count and the times of its
// execution.
func (d *Document) clearOutputs(c *Cell) bool {
	if c.typ != Code {
		return false
	}
	changed := d.completeCode(c)
	if c.OutputCount() > 0 || c.n.get("outputs").kind() != kindArray {
		d.setMember(c, "outputs", newArray())
		changed = true
	}
	if c.n.get("execution_count").kind() != kindNull {
		d.setMember(c, "execution_count", newNull())
		changed = true
	}
	if d.removeMetadata(c, "execution") {
		changed = true
	}
	d.setMark(c, "")
	return changed
}
