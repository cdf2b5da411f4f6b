package notebook

import (
	"slices"
	"strings"
)

// A cell may be active in some forms of its notebook alone, as Jupytext has it: a frozen
// one in the notebook, and one with the tag active-ipynb-md, or with active="ipynb,md" in
// its metadata, in those that are named. Where a cell is not active in scripts, a script
// has all of it commented out; one that is not active in notebooks is a raw cell there.

// The forms of a notebook that matter here, as tags name them.
const (
	inNotebook = "ipynb"
	inScript   = "py"
)

// activeKey is the member of a cell's metadata that names the forms.
const activeKey = "active"

// isActive reports whether a cell with that metadata, which may be nil, is active in a
// form of the notebook.
func isActive(form string, metadata *node) bool {
	if frozen := metadata.at("run_control", "frozen"); frozen != nil && frozen.kind() == kindTrue {
		return form == inNotebook
	}
	if forms, ok := activeTag(metadata); ok {
		return slices.Contains(forms, form)
	}
	forms, named := metadata.at(activeKey).str()
	return !named || slices.Contains(strings.FieldsFunc(forms, func(r rune) bool { return r == '.' || r == ',' }), form)
}

// activeTag returns the words of the first tag that names forms.
func activeTag(metadata *node) (forms []string, ok bool) {
	tags := metadata.at("tags")
	if tags == nil || tags.kind() != kindArray {
		return nil, false
	}
	tags.each(func(_ int, _ []byte, v *node) bool {
		if tag, isText := v.str(); isText && strings.HasPrefix(tag, "active-") {
			forms, ok = strings.Split(tag, "-"), true
		}
		return !ok
	})
	return forms, ok
}

// readInactive reads the cell of a marker without a type that is not active everywhere.
// ok is false for all others.
func readInactive(m percentMarker, body []string) (typ CellType, source string, ok bool) {
	metadata := newObject(m.metadata...)
	script, active := isActive(inScript, metadata), isActive(inNotebook, metadata)
	if text, named := metadata.at(activeKey).str(); named && text == "" && !active && !m.typed {
		script = true // a raw cell as it is
	}
	switch {
	case m.typed || script && active:
		return "", "", false
	case active:
		return Code, readComment(body), true
	case script:
		return Raw, strings.Join(uncommentMagics(body), "\n"), true
	default:
		return Raw, readComment(body), true
	}
}

// writeInactive writes what readInactive reads, and takes from m the type that its marker
// has not. A code cell that is not active in notebooks will be read as a raw one.
func (c *Cell) writeInactive(m *percentMarker, source string) (body []string, ok bool) {
	metadata := c.n.get("metadata")
	script, active := isActive(inScript, metadata), isActive(inNotebook, metadata)
	if c.typ == Markdown || script && active || c.typ == Raw && active {
		return nil, false
	}
	if c.typ == Raw {
		if text, _ := metadata.at(activeKey).str(); text == "" && !hasActiveTag(metadata) {
			return nil, false // it says nothing
		}
		m.typ = Code // which is no type in a marker
	}
	if script {
		return commentMagics(strings.Split(source, "\n")), true
	}
	return writeComment(source), true
}

func hasActiveTag(metadata *node) bool {
	_, ok := activeTag(metadata)
	return ok
}
