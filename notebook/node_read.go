package notebook

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// each calls f for every item in order until f returns false. A raw node is
// walked without expanding it, so reading costs no memory that stays.
func (n *node) each(f func(i int, key []byte, val *node) bool) {
	if n.open == 0 {
		i := 0
		walk(n.raw, func(key, val []byte) bool {
			i++
			return f(i-1, key, rawNode(val))
		})
		return
	}
	for i := range n.items {
		if !f(i, n.items[i].key, n.items[i].val) {
			return
		}
	}
}

// walk calls f with the name (nil in an array) and the text of each item of
// the container that raw is, until f returns false. Of a scalar it does
// nothing.
func walk(raw []byte, f func(key, val []byte) bool) {
	if raw[0] != '{' && raw[0] != '[' {
		return
	}
	s := scanner{src: raw, pos: 1}
	for {
		var it item
		if s.space(); s.peek() == '}' || s.peek() == ']' {
			return // empty
		}
		if raw[0] == '{' && s.parseName(&it) != nil {
			return
		}
		start := s.pos
		if s.skip() != nil || !f(it.key, raw[start:s.pos:s.pos]) {
			return
		}
		if s.space(); s.peek() != ',' {
			return
		}
		s.pos++
	}
}

// get returns the member of that name, nil when there is none. Of several the
// last counts, as it does for Python and JavaScript.
func (n *node) get(key string) *node {
	if n == nil || n.kind() != kindObject {
		return nil
	}
	if n.open != 0 {
		if i := n.index(key); i >= 0 {
			return n.items[i].val
		}
		return nil
	}
	var found []byte
	walk(n.raw, func(k, v []byte) bool {
		if keyIs(k, key) {
			found = v
		}
		return true
	})
	if found == nil {
		return nil
	}
	return rawNode(found)
}

// at follows a path of member names.
func (n *node) at(path ...string) *node {
	for _, key := range path {
		n = n.get(key)
	}
	return n
}

// index returns the place of a member in an expanded object, -1 when there is
// none.
func (n *node) index(key string) int {
	for i, v := range slices.Backward(n.items) {
		if keyIs(v.key, key) {
			return i
		}
	}
	return -1
}

func keyIs(raw []byte, key string) bool {
	if len(raw) == len(key)+2 && string(raw[1:len(raw)-1]) == key {
		return true
	}
	return bytes.IndexByte(raw, '\\') >= 0 && decodeString(raw) == key
}

// length returns how many items a container has.
func (n *node) length() int {
	if n == nil {
		return 0
	}
	if n.open != 0 {
		return len(n.items)
	}
	count := 0
	walk(n.raw, func(_, _ []byte) bool { count++; return true })
	return count
}

// str returns the text of a string.
func (n *node) str() (string, bool) {
	if n == nil || n.kind() != kindString {
		return "", false
	}
	return decodeString(n.raw), true
}

// integer returns the value of a number that is spelled as an integer and fits.
func (n *node) integer() (int, bool) {
	if n == nil || n.kind() != kindNumber {
		return 0, false
	}
	i, err := strconv.Atoi(string(n.raw))
	return i, err == nil
}

// multiline returns the text of nbformat's multi-line string: a string, or an
// array of strings that are joined. Elements that are no strings are passed
// over. Anything else is an empty text.
func (n *node) multiline() string {
	if n == nil {
		return ""
	}
	if s, ok := n.str(); ok {
		return s
	}
	if n.kind() != kindArray {
		return ""
	}
	var b strings.Builder
	n.each(func(_ int, _ []byte, v *node) bool {
		s, _ := v.str()
		b.WriteString(s)
		return true
	})
	return b.String()
}
