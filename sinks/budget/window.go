package budget

import "bytes"

// Window holds what is shown of a text that is written to it. Make one with
// [New].
type Window struct {
	o         Options
	headLines int
	head      list
	tail      list
	closed    bool // the head takes nothing more
	midLine   bool // the tail begins in the middle of a line

	elidedBytes, elidedLines int64
	by                       string
	seam                     seam

	column             int // bytes of the current line, for Options.Columns
	cutLines, cutBytes int64
}

// New returns an empty window.
func New(o Options) *Window {
	o = o.WithDefaults()
	return &Window{o: o, headLines: o.headLines(), closed: o.HeadBytes == 0}
}

// Write adds text. A chunk ends with a whole character.
func (w *Window) Write(text []byte) {
	if w.o.Columns > 0 {
		text = w.cut(text)
	}
	if !w.closed {
		text = w.writeHead(text)
	}
	if len(text) == 0 {
		return
	}
	// In steps, so that what a large chunk pushes out can hold the rest of it.
	for len(text) > 0 {
		n := fitUp(text, chunk)
		w.tail.write(text[:n])
		w.trim()
		text = text[n:]
	}
}

// writeHead fills the head and returns what did not fit.
func (w *Window) writeHead(text []byte) []byte {
	n := fit(text, w.o.HeadBytes-w.head.bytes)
	for i, left := 0, w.headLines-w.head.newlines; ; left-- {
		if left <= 0 {
			n = min(n, i)
			break
		}
		k := bytes.IndexByte(text[i:n], '\n')
		if k < 0 {
			break
		}
		i += k + 1
	}
	w.head.write(text[:n])
	if n < len(text) {
		w.closed = true
	}
	return text[n:]
}

// trim makes the window fit its budget by moving the end of the head to the
// tail and dropping from the tail's beginning.
func (w *Window) trim() {
	for w.head.bytes > w.o.HeadBytes || w.head.newlines > w.headLines || w.head.lines() > w.o.Lines {
		w.shiftHead()
	}
	for w.head.bytes+w.tail.bytes > w.o.Bytes && w.tail.first != nil {
		w.drop(w.head.bytes+w.tail.bytes-w.o.Bytes, "bytes")
	}
	for w.tail.first != nil {
		extra := w.head.newlines + w.tail.lines() - w.o.Lines
		if extra <= 0 {
			return
		}
		w.drop(w.tail.first.linesEnd(extra), "lines")
	}
}

// drop elides bytes at the beginning of the tail.
func (w *Window) drop(n int, by string) {
	if w.by == "" {
		w.by = by
	}
	text := w.tail.first.text
	size, newlines, ended := w.tail.dropFront(n)
	w.seam.dropped(text[:size])
	w.elidedBytes += int64(size)
	w.elidedLines += int64(newlines)
	if size > 0 {
		w.midLine = !ended
	}
}

// shiftHead takes the last node from the head: to the tail if the tail follows
// it directly, else out of the window. Only a slot that grew makes this happen.
func (w *Window) shiftHead() {
	n := w.head.last
	w.head.remove(n)
	w.closed = true
	if w.elidedBytes == 0 {
		w.tail.pushFront(n)
		return
	}
	if n.slot != nil {
		n.slot.node, n.slot = nil, nil
	}
	w.elidedBytes += int64(len(n.text))
	w.elidedLines += int64(n.newlines)
	w.seam.prepended(n.text)
}

// cut applies Options.Columns to a chunk.
func (w *Window) cut(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for len(text) > 0 {
		line, ended := text, false
		if k := bytes.IndexByte(text, '\n'); k >= 0 {
			line, ended = text[:k], true
		}
		room := w.o.Columns - w.column
		n := len(line)
		if room >= 0 && n > room {
			n = Floor(line, room)
			out = append(append(out, line[:n]...), "…"...)
			w.column = w.o.Columns + 1
			w.cutLines++
			w.cutBytes += int64(len(line) - n)
		} else if room >= 0 {
			out = append(out, line...)
			w.column += n
		} else {
			w.cutBytes += int64(n)
		}
		text = text[len(line):]
		if ended {
			out, text, w.column = append(out, '\n'), text[1:], 0
		}
	}
	return out
}

// Limit changes the budget. What is shown already and does not fit any more is
// elided.
func (w *Window) Limit(bytes, lines int) {
	w.o.Bytes, w.o.Lines = max(bytes, 1), max(lines, 1)
	w.o.HeadBytes, w.headLines = min(w.o.HeadBytes, w.o.Bytes), min(w.headLines, w.o.Lines)
	w.trim()
}

// Used returns how many bytes and lines are shown.
func (w *Window) Used() (bytes, lines int) {
	return w.head.bytes + w.tail.bytes, w.head.newlines + w.tail.lines()
}

// Truncated reports whether something is elided.
func (w *Window) Truncated() bool { return w.elidedBytes > 0 }

// Cut reports whether a line was cut to Options.Columns.
func (w *Window) Cut() bool { return w.cutLines > 0 }

// Reset empties the window: what was written is forgotten, also in the counts.
// Slots of it are gone.
func (w *Window) Reset() {
	for _, l := range []*list{&w.head, &w.tail} {
		for n := l.first; n != nil; n = n.next {
			if n.slot != nil {
				n.slot.node = nil
			}
		}
		*l = list{}
	}
	w.closed, w.midLine, w.by, w.column = w.o.HeadBytes == 0, false, "", 0
	w.elidedBytes, w.elidedLines, w.cutLines, w.cutBytes = 0, 0, 0, 0
	w.seam = seam{}
}

// Slot is a piece of a window's text that can be replaced where it stands.
type Slot struct {
	w    *Window
	node *node // nil when the window does not show all of it any more
}

// Slot adds text as one piece.
func (w *Window) Slot(text []byte) *Slot {
	if w.o.Columns > 0 {
		text = w.cut(text)
	}
	s := &Slot{w: w}
	s.node = &node{text: bytes.Clone(text), newlines: bytes.Count(text, newline), slot: s}
	if !w.closed && w.head.bytes+len(text) <= w.o.HeadBytes && w.head.newlines+s.node.newlines <= w.headLines {
		w.head.pushBack(s.node)
	} else {
		w.closed = true
		w.tail.pushBack(s.node)
	}
	w.trim()
	return s
}

// Set replaces the slot's text. It returns false, and changes nothing, when the
// slot is not wholly in its window any more.
func (s *Slot) Set(text []byte) bool {
	n := s.node
	if n == nil {
		return false
	}
	if s.w.o.Columns > 0 {
		column := s.w.column
		s.w.column = 0
		text = s.w.cut(text)
		s.w.column = column
	}
	n.in.add(n, len(text)-len(n.text), bytes.Count(text, newline)-n.newlines)
	n.text = bytes.Clone(text)
	s.w.trim()
	return true
}

// Live reports whether the slot is wholly in its window, so that Set will
// replace it.
func (s *Slot) Live() bool { return s.node != nil }
