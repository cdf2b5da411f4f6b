package sanitise

import (
	"slices"

	"github.com/coppice-run/coppice/internal/bytescan"
)

// Screen folds the output of one or more streams into plain text, as one
// terminal would that all of them write to: each stream has its own decoder,
// since a chunk of another stream may come in the middle of a sequence, and all
// share the last row.
//
// Text that can no longer change is committed; [Screen.Take] hands it out. The
// last row stays until a newline, [Screen.Break] or [Screen.Close] ends it. The
// zero value is an empty screen.
type Screen struct {
	decoders [streams]decoder
	last     row
	done     []byte // committed and not yet taken
}

// Stream names one of the byte streams of a screen.
type Stream uint8

// The streams.
const (
	Out Stream = iota
	Err
	streams
)

// Write adds a chunk of a stream.
func (s *Screen) Write(stream Stream, chunk string) {
	s.done = slices.Grow(s.done, len(chunk))
	s.decoders[stream].write((*screenTarget)(s), chunk)
}

// Take returns the text that was committed since the last Take. It is valid
// until the next method call.
func (s *Screen) Take() []byte {
	text := s.done
	s.done = s.done[:0]
	if cap(s.done) > keepBuffer {
		s.done = nil
	}
	return text
}

// keepBuffer is the largest buffer that is kept for the next chunk.
const keepBuffer = 64 << 10

// Row returns the last row as it is shown now.
func (s *Screen) Row() string { return string(s.last.appendTo(nil, true)) }

// Break ends the last row with a newline if it shows anything.
func (s *Screen) Break() {
	if s.last.empty() {
		s.last.reset()
		return
	}
	(*screenTarget)(s).newline()
}

// Close ends the streams and commits the last row, without a newline. The
// screen can be written to afterwards; it starts new streams.
func (s *Screen) Close() {
	for i := range s.decoders {
		s.decoders[i].flush((*screenTarget)(s))
	}
	s.done = s.last.appendTo(s.done, true)
	s.last.reset()
}

// Clear forgets what was committed and not taken, and the last row. Sequences
// in hand go on: a stream does not end because the screen is cleared.
func (s *Screen) Clear() {
	s.done = s.done[:0]
	s.last.reset()
}

// screenTarget keeps the methods of target off Screen.
type screenTarget Screen

func (t *screenTarget) text(s string)   { t.done = t.last.put(t.done, s) }
func (t *screenTarget) carriageReturn() { t.last.home() }
func (t *screenTarget) backspace()      { t.last.back() }

func (t *screenTarget) newline() {
	t.done = append(t.last.appendTo(t.done, true), '\n')
	t.last.reset()
}

// control follows the sequences that stay within the row: CUF, CUB, CHA, HPA,
// EL and, of ED, the part to the right of the cursor.
func (t *screenTarget) control(params []byte, final byte) {
	n, ok := number(params)
	if !ok {
		return
	}
	switch final {
	case 'C', 'a':
		t.last.move(t.last.column() + max(n, 1))
	case 'D':
		t.last.move(t.last.column() - max(n, 1))
	case 'G', '`':
		t.last.move(max(n, 1) - 1)
	case 'K':
		if n != 1 {
			t.last.erase(n == 2)
		}
	case 'J':
		if n == 0 {
			t.last.erase(false)
		}
	}
}

// number reads the only parameter of a control sequence, 0 when there is none.
func number(params []byte) (int, bool) {
	n := 0
	for _, c := range params {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = min(n*10+int(c-'0'), MaxRow)
	}
	return n, true
}

// Clean returns s as one screen shows it.
func Clean(s string) string {
	if plain(s) {
		return s
	}
	var t Screen
	t.Write(Out, s)
	t.Close()
	return string(t.done)
}

// plain reports whether s is ASCII text without any control but newline and
// tab, which is most of what is cleaned.
func plain(s string) bool {
	for {
		if s = s[bytescan.Printable(s):]; s == "" {
			return true
		}
		if s[0] != '\t' && s[0] != '\n' {
			return false
		}
		s = s[1:]
	}
}
