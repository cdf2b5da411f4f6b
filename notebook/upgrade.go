package notebook

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// Upgrade brings the notebook to nbformat 4.5: cells without an id get one,
// ids that are there stay. It reports whether anything changed; a notebook of
// 4.5 or a later 4.x is left as it is. Afterwards an older notebook that was
// read is written in the new format.
func (d *Document) Upgrade() bool {
	if d.from != 0 && !d.edited {
		d.edited = true
		return true
	}
	if d.hasIDs() {
		return false
	}
	d.touch()
	d.root.setMember("nbformat", newInt(4), d.style(), 0)
	d.root.setMember("nbformat_minor", newInt(5), d.style(), 0)
	d.minor = 5
	d.AddMissingIDs()
	return true
}

// AddMissingIDs gives an id to each cell of a 4.5 notebook that has none, and
// returns to how many. In an older 4.x, where ids are not allowed, it does
// nothing.
func (d *Document) AddMissingIDs() int {
	if !d.hasIDs() {
		return 0
	}
	added := 0
	used := d.usedIDs()
	for _, c := range d.cells {
		if c.n.get("id") != nil {
			continue
		}
		d.setMember(c, "id", newString(d.freshIDNotIn(used)))
		added++
	}
	return added
}

// mimeOfV3 maps the names that nbformat 3 gave to the kinds of data.
var mimeOfV3 = map[string]string{
	"text": "text/plain", "html": "text/html", "svg": "image/svg+xml", "png": "image/png",
	"jpeg": "image/jpeg", "latex": "text/latex", "json": "application/json",
	"javascript": "application/javascript",
}

// upgradeWorksheets turns the tree of an nbformat 3 notebook into one of 4.5:
// worksheets become one list of cells, and cells and outputs change their shape
// as nbformat's own converter changes it. Texts keep their spelling.
func (d *Document) upgradeWorksheets() error {
	d.st = detectStyle(d.root, d.src)
	sheets := d.root.get("worksheets")
	if sheets.kind() != kindArray {
		return fault(ErrStructure, "missing cells array")
	}
	cells := newArray()
	var err error
	sheets.each(func(i int, _ []byte, sheet *node) bool {
		list := sheet.get("cells")
		if list == nil || list.kind() != kindArray {
			err = fault(ErrStructure, "missing cells array in worksheet %d", i)
			return false
		}
		list.each(func(_ int, _ []byte, old *node) bool {
			c, reason := upgradeCell(old, len(cells.items))
			if reason != "" {
				err = &Error{Kind: ErrCell, Cell: len(cells.items), Reason: reason}
				return false
			}
			cells.items = append(cells.items, item{val: c})
			return true
		})
		return err == nil
	})
	if err != nil {
		return err
	}
	members := []member{
		{"cells", cells},
		{"metadata", upgradeMetadata(d.root.get("metadata"))},
		{"nbformat", newInt(4)},
		{"nbformat_minor", newInt(5)},
	}
	members = append(members, others(d.root, "cells", "worksheets", "metadata", "nbformat", "nbformat_minor",
		"orig_nbformat", "orig_nbformat_minor")...)
	d.root = d.st.layOut(sortedObject(members), 0)
	return nil
}

// upgradeMetadata drops what nbformat 4 no longer has: the notebook's name and
// its signature.
func upgradeMetadata(old *node) *node {
	if old == nil || old.kind() != kindObject {
		return newObject()
	}
	return newObject(others(old, "name", "signature")...)
}

func upgradeCell(old *node, index int) (c *node, reason string) {
	if old.kind() != kindObject {
		return nil, fmt.Sprintf("expected an object, found %s", old.kind())
	}
	typ, _ := old.get("cell_type").str()
	metadata := old.get("metadata")
	if metadata == nil || metadata.kind() != kindObject {
		metadata = newObject()
	}
	source := old.get("source")
	members := []member{}
	handled := []string{"cell_type", "metadata", "source", "id"}
	switch typ {
	case "code":
		handled = append(handled, "language", "collapsed", "input", "prompt_number", "outputs", "execution_count")
		source = old.get("input")
		if collapsed := old.get("collapsed"); collapsed != nil {
			metadata = newObject(append(others(metadata, "collapsed"), member{"collapsed", collapsed})...)
		}
		count := old.get("prompt_number")
		if count == nil {
			count = newNull()
		}
		members = append(members, member{"execution_count", count}, member{"outputs", upgradeOutputs(old.get("outputs"))})
	case "heading":
		handled = append(handled, "level")
		source = upgradeHeading(old)
		typ = "markdown"
	case "html":
		typ = "markdown"
	case "markdown", "raw":
	default:
		return nil, fmt.Sprintf("cell_type is %q, expected code, markdown, raw, heading or html", typ)
	}
	if source == nil {
		source = newArray()
	}
	members = append(members, member{"cell_type", newString(typ)}, member{"metadata", metadata},
		member{"source", source}, member{"id", newString(derivedID(index, source.multiline()))})
	return sortedObject(append(members, others(old, handled...)...)), ""
}

// derivedID makes the same id for the same cell each time an old notebook is
// read; nothing is random in reading.
func derivedID(index int, source string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\n%s", index, source))
	return hex.EncodeToString(sum[:8])
}

func upgradeHeading(old *node) *node {
	level, ok := old.get("level").integer()
	if !ok || level < 1 {
		level = 1
	}
	text := strings.ReplaceAll(strings.TrimSuffix(old.get("source").multiline(), "\n"), "\n", " ")
	return newStrings([]string{strings.Repeat("#", min(level, 6)) + " " + text})
}

func upgradeOutputs(old *node) *node {
	out := newArray()
	if old == nil || old.kind() != kindArray {
		return out
	}
	old.each(func(_ int, _ []byte, o *node) bool {
		out.items = append(out.items, item{val: upgradeOutput(o)})
		return true
	})
	return out
}

func upgradeOutput(old *node) *node {
	if old.kind() != kindObject {
		return old
	}
	typ, _ := old.get("output_type").str()
	var members []member
	switch typ {
	case "pyout", "display_data":
		metadata := old.get("metadata")
		if metadata == nil || metadata.kind() != kindObject {
			metadata = newObject()
		}
		members = append(members, member{"metadata", newObject(renameMIME(others(metadata))...)})
		if typ == "pyout" {
			typ = "execute_result"
			count := old.get("prompt_number")
			if count == nil {
				count = newNull()
			}
			members = append(members, member{"execution_count", count})
		}
		data := renameMIME(others(old, "output_type", "metadata", "prompt_number", "execution_count"))
		for i, m := range data {
			if m.key != "application/json" {
				continue
			}
			// Version 3 kept JSON as text.
			if v, err := parseValue([]byte(m.val.multiline())); err == nil {
				data[i].val = v
			}
		}
		members = append(members, member{"data", newObject(data...)})
	case "pyerr":
		typ = "error"
		members = others(old, "output_type")
	case "stream":
		name := old.get("stream")
		if name == nil {
			name = newString("stdout")
		}
		members = append(others(old, "output_type", "stream"), member{"name", name})
	default:
		return old
	}
	return sortedObject(append(members, member{"output_type", newString(typ)}))
}

func renameMIME(members []member) []member {
	for i, m := range members {
		if mime, ok := mimeOfV3[m.key]; ok {
			members[i].key = mime
		}
	}
	return members
}

// others returns the members of an object but those named.
func others(n *node, names ...string) []member {
	var rest []member
	n.each(func(_ int, key []byte, v *node) bool {
		if name := decodeString(key); !slices.Contains(names, name) {
			rest = append(rest, member{name, v})
		}
		return true
	})
	return rest
}

// sortedObject makes an object with its members in the order in which nbformat
// writes them.
func sortedObject(members []member) *node {
	n := newObject(members...)
	slices.SortStableFunc(n.items, func(a, b item) int { return bytes.Compare(a.key, b.key) })
	return n
}
