package notebook

import (
	"bytes"
	"io"
	"slices"
)

// node is a JSON value that remembers how it was written. It is either raw,
// and then raw is its text, or expanded, and then open, items and tail are,
// with every byte of white space. Expanding changes nothing in what is
// written; edits change items, so all that was not edited stays as it was.
//
// A node belongs to one document, and raw may be a part of the bytes that were
// read: it is never written to.
type node struct {
	raw []byte
	// open is '{' or '[' when the node is expanded, 0 when it is raw.
	open  byte
	items []item
	// tail is the white space before the closing bracket.
	tail []byte
}

// item is a member of an object or an element of an array:
//
//	lead key colon value trail ,
type item struct {
	lead []byte
	// key is the name as it is spelled, quotes included; nil in an array.
	key []byte
	// colon is the colon with the white space around it; nil in an array.
	colon []byte
	val   *node
	trail []byte
	// fresh says that the item's white space is still to be laid out.
	fresh bool
}

// kind is a JSON type, named by the byte that the value starts with.
type kind byte

const (
	kindObject kind = '{'
	kindArray  kind = '['
	kindString kind = '"'
	kindNumber kind = '0'
	kindTrue   kind = 't'
	kindFalse  kind = 'f'
	kindNull   kind = 'n'
)

func (k kind) String() string {
	switch k {
	case kindObject:
		return "an object"
	case kindArray:
		return "an array"
	case kindString:
		return "a string"
	case kindNumber:
		return "a number"
	case kindNull:
		return "null"
	default:
		return "a boolean"
	}
}

func (n *node) kind() kind {
	c := n.open
	if c == 0 {
		c = n.raw[0]
	}
	switch c {
	case '{', '[', '"', 't', 'f', 'n':
		return kind(c)
	}
	return kindNumber
}

func rawNode(raw []byte) *node { return &node{raw: raw} }

// parseNode reads one value, expanding containers to the given depth: with 0
// the value stays raw, with 1 its items are raw, and so on.
func parseNode(s *scanner, depth int) (*node, error) {
	start := s.pos
	c := s.peek()
	if depth == 0 || c != '{' && c != '[' {
		if err := s.skip(); err != nil {
			return nil, err
		}
		return rawNode(s.src[start:s.pos:s.pos]), nil
	}
	n := &node{open: c}
	closing := n.closing()
	s.pos++
	for {
		lead := s.space()
		if s.peek() == closing && len(n.items) == 0 {
			n.tail = lead
			s.pos++
			return n, nil
		}
		it := item{lead: lead}
		if c == '{' {
			if err := s.parseName(&it); err != nil {
				return nil, err
			}
		}
		val, err := parseNode(s, depth-1)
		if err != nil {
			return nil, err
		}
		it.val = val
		after := s.space()
		if len(n.items) == cap(n.items) {
			// By doubling: append's own steps for long lists copy them often.
			n.items = slices.Grow(n.items, max(4, len(n.items)))
		}
		switch s.peek() {
		case closing:
			n.items, n.tail = append(n.items, it), after
			s.pos++
			return n, nil
		case ',':
			it.trail = after
			n.items = append(n.items, it)
			s.pos++
		default:
			return nil, s.fail("expected ',' or %q, found %s", closing, s.describe())
		}
	}
}

func (s *scanner) parseName(it *item) error {
	start := s.pos
	if s.peek() != '"' {
		return s.fail("expected a member name in quotes, found %s", s.describe())
	}
	if err := s.str(); err != nil {
		return err
	}
	it.key = s.src[start:s.pos:s.pos]
	start = s.pos
	s.space()
	if s.peek() != ':' {
		return s.fail("expected ':', found %s", s.describe())
	}
	s.pos++
	s.space()
	it.colon = s.src[start:s.pos:s.pos]
	return nil
}

func (n *node) closing() byte {
	if n.open == '{' {
		return '}'
	}
	return ']'
}

// expand makes the items of a container reachable; their values stay raw.
// It does nothing to a scalar or to what is expanded. The syntax was checked
// when the document was read, so it cannot fail.
func (n *node) expand() *node {
	if n.open == 0 && (n.raw[0] == '{' || n.raw[0] == '[') {
		if e, err := parseNode(newScanner(n.raw), 1); err == nil {
			*n = *e
		}
	}
	return n
}

// clone returns a copy that can be edited apart; raw text is shared.
func (n *node) clone() *node {
	c := *n
	c.items = slices.Clone(n.items)
	for i := range c.items {
		c.items[i].val = c.items[i].val.clone()
	}
	return &c
}

// bytes returns the node as it is written.
func (n *node) bytes() []byte {
	if n.open == 0 {
		return n.raw
	}
	var b bytes.Buffer
	w := errWriter{w: &b}
	n.writeTo(&w)
	return b.Bytes()
}

// writeTo writes the node, piece by piece and without a copy of the large ones.
func (n *node) writeTo(w *errWriter) {
	if n.open == 0 {
		w.write(n.raw)
		return
	}
	w.write([]byte{n.open})
	for i := range n.items {
		if i > 0 {
			w.write([]byte{','})
		}
		it := &n.items[i]
		w.write(it.lead)
		w.write(it.key)
		w.write(it.colon)
		it.val.writeTo(w)
		w.write(it.trail)
	}
	w.write(n.tail)
	w.write([]byte{n.closing()})
}

// errWriter keeps the first error, so that a tree is written without a check
// at each piece.
type errWriter struct {
	w   io.Writer
	n   int64
	err error
}

func (w *errWriter) write(p []byte) {
	if w.err != nil || len(p) == 0 {
		return
	}
	n, err := w.w.Write(p)
	w.n, w.err = w.n+int64(n), err
}
