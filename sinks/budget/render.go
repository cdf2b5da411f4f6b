package budget

import (
	"bytes"
	"fmt"
)

// edges says how much of the head and the tail is shown.
type edges struct {
	head, tail           []byte
	headLines, tailLines int
}

// edges cuts head and tail at lines if something is elided between them.
func (w *Window) edges() edges {
	e := edges{head: w.head.text(), tail: w.tail.text(), headLines: w.head.newlines, tailLines: w.tail.lines()}
	if w.elidedBytes == 0 {
		if len(e.tail) == 0 {
			e.headLines = w.head.lines()
		}
		return e
	}
	head := e.head
	if k := bytes.LastIndexByte(e.head, '\n') + 1; k >= len(e.head)*3/4 {
		e.head = e.head[:k]
	} else {
		e.head = e.head[:w.seam.head(e.head)]
	}
	switch k := bytes.IndexByte(e.tail, '\n') + 1; {
	case !w.midLine:
	case k > 0 && k <= len(e.tail)/4:
		e.tail = e.tail[k:]
		e.tailLines--
	default:
		if n := w.seam.tail(head, e.tail); n > 0 {
			e.tail = e.tail[n:]
			e.tailLines = bytes.Count(e.tail, newline)
			if n := len(e.tail); n > 0 && e.tail[n-1] != '\n' {
				e.tailLines++
			}
		}
	}
	return e
}

// text returns the text of a list.
func (l *list) text() []byte {
	out := make([]byte, 0, l.bytes)
	for n := l.first; n != nil; n = n.next {
		out = append(out, n.text...)
	}
	return out
}

// Text returns what is shown: the whole text, or head, marker and tail.
func (w *Window) Text() string {
	head, marker, tail := w.Parts()
	return head + marker + tail
}

// Parts returns what is shown in its parts. The marker stands on a line of its
// own; it is empty when nothing is elided, and when there is no head: that the
// beginning is missing is what a tail alone says, and the counts tell how much.
func (w *Window) Parts() (head, marker, tail string) {
	e := w.edges()
	head, tail = string(e.head), string(e.tail)
	if w.elidedBytes == 0 || head == "" {
		return head, "", tail
	}
	s := w.stats(e)
	lines, size := s.TotalLines-s.ShownLines, s.TotalBytes-s.ShownBytes
	marker = fmt.Sprintf("[… %s elided …]\n", Size(size))
	if lines > 1 {
		marker = fmt.Sprintf("[… %d lines, %s elided …]\n", lines, Size(size))
	}
	if head[len(head)-1] != '\n' {
		marker = "\n" + marker
	}
	return head, marker, tail
}

// Stats returns the counts that go with Text.
func (w *Window) Stats() Stats { return w.stats(w.edges()) }

func (w *Window) stats(e edges) Stats {
	return Stats{
		TotalBytes: int64(w.head.bytes+w.tail.bytes) + w.elidedBytes,
		TotalLines: w.totalLines(),
		ShownBytes: int64(len(e.head) + len(e.tail)),
		ShownLines: int64(e.headLines + e.tailLines),
		HeadLines:  int64(e.headLines), TailLines: int64(e.tailLines),
		Truncated: w.elidedBytes > 0, By: w.by,
		CutLines: w.cutLines, CutBytes: w.cutBytes,
	}
}

func (w *Window) totalLines() int64 {
	switch {
	case w.tail.bytes > 0:
		return int64(w.head.newlines) + w.elidedLines + int64(w.tail.lines())
	case w.elidedBytes == 0:
		return int64(w.head.lines())
	case w.midLine: // the last line is elided, and no newline ended it
		return int64(w.head.newlines) + w.elidedLines + 1
	default:
		return int64(w.head.newlines) + w.elidedLines
	}
}

// Size formats a number of bytes for people: 512B, 50.0KB, 2.3MB, with 1 KB =
// 1024 bytes.
func Size(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%dB", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1fKB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1fMB", float64(n)/(1<<20))
	default:
		return fmt.Sprintf("%.1fGB", float64(n)/(1<<30))
	}
}
