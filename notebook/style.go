package notebook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// style is how a document lays out its JSON. New values are written in it, so
// that an edit looks as if the program that wrote the file had made it.
type style struct {
	// newline is "\n" or "\r\n", or empty when the document is one line.
	newline string
	// unit is the indentation of one level.
	unit string
	// colon stands between a name and its value.
	colon string
	// gap is the white space after a comma on one line.
	gap string
	// ascii says that the writer escapes everything outside ASCII.
	ascii bool
}

// defaultStyle is the layout of nbformat.write: one space for each level.
func defaultStyle() *style { return &style{newline: "\n", unit: " ", colon: ": ", gap: " "} }

// detectStyle reads the layout off an expanded root. What an empty root does
// not tell is taken from defaultStyle.
func detectStyle(root *node, src []byte) *style {
	st := defaultStyle()
	if len(root.items) == 0 {
		return st
	}
	first := root.items[0]
	st.colon = string(first.colon)
	if i := bytes.LastIndexByte(first.lead, '\n'); i >= 0 {
		st.unit = string(first.lead[i+1:])
		if i > 0 && first.lead[i-1] == '\r' {
			st.newline = "\r\n"
		}
	} else {
		st.newline, st.unit, st.gap = "", "", ""
		if len(root.items) > 1 {
			st.gap = string(root.items[1].lead)
		}
	}
	st.ascii = escapesNonASCII(src)
	return st
}

// escapesNonASCII reports whether src holds an escape of a character outside
// ASCII and no such character itself: its writer is one that escapes. (A
// writer that does not may still escape a lone surrogate.)
func escapesNonASCII(src []byte) bool {
	if !isASCII(src) {
		return false
	}
	for {
		i := bytes.Index(src, []byte(`\u`))
		if i < 0 || i+6 > len(src) {
			return false
		}
		slashes := 0
		for j := i; j >= 0 && src[j] == '\\'; j-- {
			slashes++
		}
		if slashes%2 == 1 && hex4(src[i+2:]) >= 0x80 {
			return true
		}
		src = src[i+2:]
	}
}

// lead is the white space before an item at a level of nesting; the members
// of the root are at level 1.
func (st *style) lead(level int) []byte {
	if st.newline == "" {
		return nil
	}
	return []byte(st.newline + strings.Repeat(st.unit, level))
}

// layOut returns n written in the style, its brackets at the given level.
// Scalars and names keep their spelling, but for the escapes of an ASCII style.
func (st *style) layOut(n *node, level int) *node {
	if k := n.kind(); k != kindObject && k != kindArray {
		if st.ascii && k == kindString {
			return rawNode(escapeNonASCII(n.raw))
		}
		return n
	}
	n.expand()
	out := &node{open: n.open, items: slices.Clone(n.items)}
	for i := range out.items {
		it := &out.items[i]
		it.lead, it.trail, it.fresh = st.lead(level+1), nil, false
		if i > 0 && st.newline == "" {
			it.lead = []byte(st.gap)
		}
		if out.open == '{' {
			it.colon = []byte(st.colon)
			if st.ascii {
				it.key = escapeNonASCII(it.key)
			}
		}
		it.val = st.layOut(it.val, level+1)
	}
	if len(out.items) > 0 {
		out.tail = st.lead(level)
	}
	return out
}

// setItems replaces the items of an expanded container whose brackets are at
// the given level. Items that were there keep their white space, as far as
// their new place allows; fresh ones get that of their neighbours.
func (n *node) setItems(items []item, st *style, level int) {
	old := n.items
	first, rest := st.lead(level+1), st.lead(level+1)
	if st.newline == "" {
		rest = []byte(st.gap)
	}
	var wasFirst *node
	if len(old) > 0 {
		first, wasFirst = old[0].lead, old[0].val
		switch {
		case len(old) > 1:
			rest = old[1].lead
		case bytes.IndexByte(first, '\n') >= 0:
			rest = first
		default:
			rest = []byte(st.gap)
		}
	}
	for i := range items {
		it := &items[i]
		switch {
		case i == 0:
			it.lead = first
		case it.fresh || it.val == wasFirst:
			it.lead = rest
		}
		if it.fresh && it.key != nil {
			it.colon = []byte(st.colon)
			if len(old) > 0 {
				it.colon = old[0].colon
			}
		}
		if i == len(items)-1 {
			it.trail = nil
		}
		it.fresh = false
	}
	switch {
	case len(items) == 0 && len(old) > 0:
		n.tail = nil
	case len(items) > 0 && len(old) == 0:
		n.tail = st.lead(level)
	}
	n.items = items
}

// setMember sets a member of an expanded object whose brackets are at the
// given level: in place when it exists; else in its place in the alphabet when
// the members are in that order, as nbformat writes them, and at the end when
// they are not.
func (n *node) setMember(key string, val *node, st *style, level int) {
	val = st.layOut(val, level+1)
	if i := n.index(key); i >= 0 {
		if n.items[i].val == val {
			return
		}
		n.items[i].val = val
		return
	}
	pos := len(n.items)
	byName := func(a, b item) int { return bytes.Compare(a.key, b.key) }
	it := item{key: appendString(nil, key, st.ascii), val: val, fresh: true}
	if slices.IsSortedFunc(n.items, byName) {
		pos, _ = slices.BinarySearchFunc(n.items, it, byName)
	}
	n.setItems(slices.Insert(slices.Clone(n.items), pos, it), st, level)
}

// removeMember removes all members of that name and tells whether there was
// one.
func (n *node) removeMember(key string, st *style, level int) bool {
	kept := slices.DeleteFunc(slices.Clone(n.items), func(it item) bool { return keyIs(it.key, key) })
	if len(kept) == len(n.items) {
		return false
	}
	n.setItems(kept, st, level)
	return true
}

// The constructors of values. They carry no layout; setMember and layOut give
// them that of the document.

func newString(s string) *node { return rawNode(appendString(nil, s, false)) }

func newInt(i int) *node { return rawNode(fmt.Appendf(nil, "%d", i)) }

func newNull() *node { return rawNode([]byte("null")) }

func newArray(elems ...*node) *node {
	n := &node{open: '['}
	for _, e := range elems {
		n.items = append(n.items, item{val: e, fresh: true})
	}
	return n
}

func newStrings(list []string) *node {
	n := newArray()
	for _, s := range list {
		n.items = append(n.items, item{val: newString(s), fresh: true})
	}
	return n
}

// member is a name and a value of newObject.
type member struct {
	key string
	val *node
}

func newObject(members ...member) *node {
	n := &node{open: '{'}
	for _, m := range members {
		n.items = append(n.items, item{key: appendString(nil, m.key, false), val: m.val, fresh: true})
	}
	return n
}

// newValue turns any value that encoding/json can marshal into a node. A
// json.RawMessage keeps its spelling.
func newValue(v any) (*node, error) {
	raw, ok := v.(json.RawMessage)
	if !ok {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			return nil, err
		}
		raw = b.Bytes()
	}
	return parseValue(raw)
}

// parseValue checks one JSON value; white space around it is dropped.
func parseValue(raw []byte) (*node, error) {
	if !utf8.Valid(raw) {
		return nil, &syntaxError{reason: "not UTF-8"}
	}
	s := newScanner(bytes.TrimSpace(raw))
	n, err := parseNode(s, 0)
	if err == nil && s.pos < len(s.src) {
		err = s.fail("expected the end of the value, found %s", s.describe())
	}
	return n, err
}
