package notebook

import (
	"fmt"
	"slices"
	"strconv"
)

// Severity says how much a [Problem] matters.
type Severity string

const (
	// SeverityError: the notebook breaks the nbformat schema, or ids repeat.
	SeverityError Severity = "error"
	// SeverityWarning: the schema allows it, but programs differ on it or the
	// format discourages it.
	SeverityWarning Severity = "warning"
)

// Problem is something that validation found.
type Problem struct {
	Severity Severity
	// Path is where: a JSONPath such as $.cells[3].outputs[0].data.
	Path string
	// Reason is what is wrong there.
	Reason string
	// Cell is the index of the cell it is in, -1 outside of cells.
	Cell int
}

// String returns severity, path and reason on one line.
func (p Problem) String() string {
	return fmt.Sprintf("%s: %s: %s", p.Severity, p.Path, p.Reason)
}

// Validate checks the notebook against the rules of its nbformat, 3.0 and 4.0 to
// 4.5: those of the official schemas, and that ids are unique. A later 4.x is
// checked by the rules of 4.5, but may have members and outputs that are
// unknown here; an older notebook is checked as it is in its file, and once it is
// edited as the 4.5 that will be written. The problems are in the order of the
// document.
//
// A notebook that [Parse] refuses has no Document to validate; its error says
// why.
func (d *Document) Validate() []Problem {
	v := validator{major: 4, minor: min(d.minor, 5), future: d.minor > 5, cell: -1}
	if old := d.asRead(); old != nil {
		v.major, v.minor = 3, 0
		if minor, ok := old.get("nbformat_minor").integer(); ok {
			v.future = minor > 0
		}
		v.rootOfV3(old)
		v.finite(d)
		return v.problems
	}
	v.root(d)
	return v.problems
}

// asRead returns the tree of a notebook that is older than nbformat 4 and will be
// written as it was read, nil of any other.
func (d *Document) asRead() *node {
	if d.from == 0 || d.edited {
		return nil
	}
	s := newScanner(d.src)
	s.pos = len(d.head)
	root, err := parseNode(s, 2)
	if err != nil {
		return nil // it was read before
	}
	return root
}

// ValidBytes parses and validates, and turns a refusal into a problem too.
func ValidBytes(data []byte) []Problem {
	d, err := Parse(data)
	if err != nil {
		return []Problem{{Severity: SeverityError, Path: "$", Reason: err.Error(), Cell: -1}}
	}
	return d.Validate()
}

// validator walks a notebook. Where it is, is a path of names and indices.
type validator struct {
	// major and minor are the format whose rules count.
	major, minor int
	future       bool
	cell         int
	path         []any
	problems     []Problem
}

func (v *validator) add(s Severity, format string, args ...any) {
	path := "$"
	for _, step := range v.path {
		switch step := step.(type) {
		case int:
			path += "[" + strconv.Itoa(step) + "]"
		case string:
			if plainKey(step) && !slices.Contains([]byte(step), '-') && !slices.Contains([]byte(step), '.') {
				path += "." + step
			} else {
				path += "[" + strconv.Quote(step) + "]"
			}
		}
	}
	v.problems = append(v.problems, Problem{Severity: s, Path: path, Reason: fmt.Sprintf(format, args...), Cell: v.cell})
}

func (v *validator) fail(format string, args ...any) { v.add(SeverityError, format, args...) }

// in runs f one step further down.
func (v *validator) in(step any, f func()) {
	v.path = append(v.path, step)
	f()
	v.path = v.path[:len(v.path)-1]
}

// is reports whether n has one of the kinds, and says so when it has not.
func (v *validator) is(n *node, kinds ...kind) bool {
	if slices.Contains(kinds, n.kind()) {
		return true
	}
	want := kinds[0].String()
	for _, k := range kinds[1:] {
		want += " or " + k.String()
	}
	v.fail("expected %s, found %s", want, n.kind())
	return false
}

// member runs f on a member if it is there, and fails if it must be and is not.
func (v *validator) member(n *node, name string, required bool, f func(*node)) {
	m := n.get(name)
	switch {
	case m != nil:
		v.in(name, func() { f(m) })
	case required:
		v.fail("%q is missing", name)
	}
}

// names checks the names of an object's members: none twice, and when the
// object is closed none but those allowed.
func (v *validator) names(n *node, closed bool, allowed ...string) {
	seen := make(map[string]bool)
	n.each(func(_ int, key []byte, _ *node) bool {
		name := decodeString(key)
		v.in(name, func() {
			if seen[name] {
				v.add(SeverityWarning, "the name occurs twice; the last one counts")
			}
			if closed && !v.future && !slices.Contains(allowed, name) {
				v.fail("nbformat %d.%d has no such member here", v.major, v.minor)
			}
		})
		seen[name] = true
		return true
	})
}

func (v *validator) elements(n *node, f func(i int, elem *node)) {
	n.each(func(i int, _ []byte, elem *node) bool {
		v.in(i, func() { f(i, elem) })
		return true
	})
}

func (v *validator) str(n *node) { v.is(n, kindString) }

func (v *validator) boolean(n *node) {
	if k := n.kind(); k != kindTrue && k != kindFalse {
		v.fail("expected a boolean, found %s", k)
	}
}

// integer checks for a number that is spelled as an integer and not below least.
func (v *validator) integer(n *node, least int, nullable bool) {
	if nullable && n.kind() == kindNull {
		return
	}
	if !v.is(n, kindNumber) {
		return
	}
	for i, c := range n.raw {
		if !(c >= '0' && c <= '9' || c == '-' && i == 0) {
			v.fail("expected an integer, found %s", n.raw)
			return
		}
	}
	// A number too large for int is above every bound here.
	if i, ok := n.integer(); ok && i < least || !ok && n.raw[0] == '-' {
		v.fail("%s is below %d", n.raw, least)
	}
}

// multiline checks for a string or a list of strings.
func (v *validator) multiline(n *node) {
	if !v.is(n, kindString, kindArray) || n.kind() == kindString {
		return
	}
	v.elements(n, func(_ int, e *node) { v.str(e) })
}

func (v *validator) root(d *Document) {
	n := d.root
	v.names(n, true, "cells", "metadata", "nbformat", "nbformat_minor")
	v.member(n, "nbformat", true, func(n *node) {
		v.integer(n, 4, false)
		if i, ok := n.integer(); ok && i > 4 {
			v.fail("%d is above 4", i)
		}
	})
	v.member(n, "nbformat_minor", true, func(n *node) { v.integer(n, 0, false) })
	v.member(n, "metadata", true, v.notebookMetadata)
	v.finite(d)
	ids, names := make(map[string]int), make(map[string]int)
	v.in("cells", func() {
		for i, c := range d.cells {
			v.cell = i
			v.in(i, func() {
				v.cellMembers(c)
				v.unique(ids, c.n.get("id"), "id", SeverityError, i)
				v.in("metadata", func() { v.unique(names, c.n.at("metadata", "name"), "name", SeverityWarning, i) })
			})
		}
	})
}

// finite warns of numbers that are none.
func (v *validator) finite(d *Document) {
	if d.nonFinite >= 0 {
		v.add(SeverityWarning, "NaN or Infinity at offset %d, which JSON does not have; Python reads it, browsers do not", d.nonFinite)
	}
}

func (v *validator) unique(seen map[string]int, n *node, what string, s Severity, cell int) {
	value, ok := n.str()
	if !ok || what == "id" && v.minor < 5 {
		return
	}
	if first, again := seen[value]; again {
		v.in(what, func() { v.add(s, "%q is the %s of cell %d too", value, what, first) })
		return
	}
	seen[value] = cell
}

func (v *validator) notebookMetadata(n *node) {
	if !v.is(n, kindObject) {
		return
	}
	v.names(n, false)
	v.member(n, "kernelspec", false, func(n *node) {
		if v.is(n, kindObject) {
			v.member(n, "name", true, v.str)
			v.member(n, "display_name", true, v.str)
		}
	})
	v.member(n, "language_info", false, func(n *node) {
		if !v.is(n, kindObject) {
			return
		}
		v.member(n, "name", true, v.str)
		v.member(n, "codemirror_mode", false, func(n *node) { v.is(n, kindString, kindObject) })
		for _, name := range []string{"file_extension", "mimetype", "pygments_lexer"} {
			v.member(n, name, false, v.str)
		}
	})
	v.member(n, "orig_nbformat", false, func(n *node) { v.integer(n, 1, false) })
	if v.minor >= 2 {
		v.member(n, "title", false, v.str)
		v.member(n, "authors", false, func(n *node) { v.is(n, kindArray) })
	}
}
