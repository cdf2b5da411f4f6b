package ndjson

import (
	"strings"
	"unicode/utf8"
)

// piece is the longest text that is made of a frame's bytes, in bytes: as long as the text of a
// frame without them may be, in characters.
const piece = 16 << 10

// Text is what was written to one stream as bytes: the start of a character whose rest has
// not come. The zero value is ready to use; one goroutine at a time.
type Text struct{ half []byte }

// Add returns the characters that b ends, in pieces of at most 16 KiB. What is none is the
// replacement character, for each longest part of one.
func (t *Text) Add(b []byte) []string {
	if len(t.half) > 0 {
		b = append(t.half, b...)
	}
	whole := len(b) - cut(b)
	t.half = append([]byte(nil), b[whole:]...)
	s, pieces := characters(b[:whole]), []string(nil)
	for len(s) > 0 {
		n := len(s)
		if n > piece {
			for n = piece; !utf8.RuneStart(s[n]); n-- {
			}
		}
		pieces, s = append(pieces, s[:n]), s[n:]
	}
	return pieces
}

// Half returns the start of a character whose rest has not come.
func (t *Text) Half() []byte { return t.half }

// TextAfter returns a Text that has the start of a character.
func TextAfter(half []byte) Text { return Text{half} }

// End returns the replacement of a character that was not finished, "" for none.
func (t *Text) End() string {
	s := characters(t.half)
	t.half = nil
	return s
}

// cut returns how many bytes at the end of b begin a character that more bytes can finish.
func cut(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if at := b[len(b)-n:]; utf8.RuneStart(at[0]) {
			if at[0] >= utf8.RuneSelf && !utf8.FullRune(at) {
				return n
			}
			return 0
		}
	}
	return 0
}

// characters returns b as text.
func characters(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var s strings.Builder
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			for n < len(b) && !utf8.RuneStart(b[n]) && !utf8.FullRune(b[:n]) {
				if n++; utf8.FullRune(b[:n]) { // its last byte does not belong to it
					n--
					break
				}
			}
		}
		s.WriteRune(r)
		b = b[n:]
	}
	return s.String()
}
