package notebook

// attachmentsKey is the member of a code cell's metadata, beside the mark of stale
// outputs, that keeps the attachments which the cell had when it was markdown or raw.
const attachmentsKey = "attachments"

// attachments returns what is attached to a cell, nil for nothing: nbformat gives code
// cells no place for that, and theirs is kept in their metadata.
func (c *Cell) attachments() *node {
	n := c.n.get("attachments")
	if c.typ == Code {
		n = c.n.at("metadata", markSpace, attachmentsKey)
	}
	if n == nil || n.kind() != kindObject {
		return nil
	}
	return n.clone()
}

// setAttachments attaches to a cell what it is to have, nil for nothing, at the place
// that a cell of its type has for it, and at no other.
func (d *Document) setAttachments(c *Cell, attachments *node) {
	if c.typ == Code {
		d.removeMember(c, "attachments")
		if attachments != nil {
			d.setMetadata(c, attachments, markSpace, attachmentsKey)
		}
		return
	}
	d.removeMark(c, attachmentsKey)
	if attachments != nil {
		d.setMember(c, "attachments", attachments)
	}
}
