package budget

import (
	"bytes"
	"unicode/utf8"
)

// chunk is the most text that is kept in one node, so that what scrolls out of
// the tail is let go in small steps.
const chunk = 4 << 10

// node is a piece of text in a list: part of what was written, or a slot.
type node struct {
	prev, next *node
	in         *list
	text       []byte
	newlines   int
	slot       *Slot
	// base is the buffer of text, once text begins further on in it.
	base []byte
}

// list is a doubly linked list of nodes with their sums.
type list struct {
	first, last     *node
	bytes, newlines int
	spare           *node // one node whose buffer can be used again
}

// write appends text, which ends with a whole character.
func (l *list) write(s []byte) {
	for len(s) > 0 {
		n := l.last
		if n == nil || n.slot != nil || len(n.text) >= chunk {
			n = l.take()
			l.pushBack(n)
		}
		limit := max(chunk-len(n.text), utf8.UTFMax)
		k := fit(s, limit)
		if k == 0 {
			k = min(limit, len(s)) // not UTF-8; it has to go somewhere
		}
		part := s[:k]
		n.text = append(n.text, part...)
		l.add(n, len(part), bytes.Count(part, newline))
		s = s[k:]
	}
}

var newline = []byte{'\n'}

// add counts what was added to n, or removed from it.
func (l *list) add(n *node, size, newlines int) {
	n.newlines += newlines
	l.bytes += size
	l.newlines += newlines
}

func (l *list) pushBack(n *node) {
	n.in, n.prev, n.next = l, l.last, nil
	if l.last != nil {
		l.last.next = n
	} else {
		l.first = n
	}
	l.last = n
	l.bytes += len(n.text)
	l.newlines += n.newlines
}

func (l *list) pushFront(n *node) {
	n.in, n.prev, n.next = l, nil, l.first
	if l.first != nil {
		l.first.prev = n
	} else {
		l.last = n
	}
	l.first = n
	l.bytes += len(n.text)
	l.newlines += n.newlines
}

func (l *list) remove(n *node) {
	if n.prev != nil {
		n.prev.next = n.next
	} else {
		l.first = n.next
	}
	if n.next != nil {
		n.next.prev = n.prev
	} else {
		l.last = n.prev
	}
	l.bytes -= len(n.text)
	l.newlines -= n.newlines
	n.in, n.prev, n.next = nil, nil, nil
}

// take returns an empty node.
func (l *list) take() *node {
	if n := l.spare; n != nil {
		l.spare = nil
		return n
	}
	return &node{}
}

// dropFront removes the first bytes of the first node, at most most, and
// returns how many bytes and newlines these were and whether they ended with a
// newline. A slot that loses something is a slot no more.
func (l *list) dropFront(most int) (size, newlines int, ended bool) {
	n := l.first
	if n.slot != nil {
		n.slot.node, n.slot = nil, nil
	}
	if len(n.text) <= most {
		size, newlines = len(n.text), n.newlines
		ended = size > 0 && n.text[size-1] == '\n'
		l.remove(n)
		if n.base == nil {
			n.base = n.text[:0]
		}
		if cap(n.base) <= 2*chunk {
			n.text, n.base, n.newlines = n.base, nil, 0
			l.spare = n
		}
		return size, newlines, ended
	}
	size = fitUp(n.text, most)
	newlines = bytes.Count(n.text[:size], newline)
	ended = n.text[size-1] == '\n'
	if n.base == nil {
		n.base = n.text[:0]
	}
	n.text = n.text[size:]
	l.add(n, -size, -newlines)
	return size, newlines, ended
}

// lines returns how many lines the list holds.
func (l *list) lines() int { return l.newlines + l.open() }

// open is 1 when the list ends in the middle of a line.
func (l *list) open() int {
	for n := l.last; n != nil; n = n.prev {
		if k := len(n.text); k > 0 {
			if n.text[k-1] != '\n' {
				return 1
			}
			return 0
		}
	}
	return 0
}

// linesEnd returns where the first lines of n end: all of n, when it has not so
// many.
func (n *node) linesEnd(lines int) int {
	if n.newlines < lines {
		return len(n.text)
	}
	end := 0
	for range lines {
		end += bytes.IndexByte(n.text[end:], '\n') + 1
	}
	return end
}

// fit returns how many of the first limit bytes of s are whole characters.
func fit(s []byte, limit int) int {
	if len(s) <= limit {
		return len(s)
	}
	n := max(limit, 0)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return n
}

// fitUp is limit, or more when a character goes on there.
func fitUp(s []byte, limit int) int {
	n := min(limit, len(s))
	for n < len(s) && !utf8.RuneStart(s[n]) {
		n++
	}
	return n
}
