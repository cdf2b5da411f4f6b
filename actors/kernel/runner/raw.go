package runner

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/coppice-run/coppice/internal/ndjson"
	"github.com/coppice-run/coppice/messages"
)

// rawPiece is the longest text of one event that is made of a frame's bytes, in bytes: as long
// as the text of a frame without them may be, in characters.
const rawPiece = 16 << 10

// text is what was written to one stream as bytes: the start of a character whose rest has
// not come. The zero value is ready to use; one goroutine at a time.
type text struct{ half []byte }

// add returns the characters that b ends. What is none is the replacement character, for each
// longest part of one.
func (t *text) add(b []byte) string {
	if len(t.half) > 0 {
		b = append(t.half, b...)
	}
	whole := len(b) - cut(b)
	t.half = append([]byte(nil), b[whole:]...)
	return characters(b[:whole])
}

// end returns the replacement of a character that was not finished, "" for none.
func (t *text) end() string {
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

// written passes on the bytes of a frame.
func (c *cell) written(ctx context.Context, f ndjson.Frame) {
	s := c.textOf(f.Type).add(f.Bytes)
	for len(s) > 0 {
		n := len(s)
		if n > rawPiece {
			for n = rawPiece; !utf8.RuneStart(s[n]); n-- {
			}
		}
		c.text(ctx, messages.StreamName(f.Type), s[:n])
		s = s[n:]
	}
}

// unfinished passes on what stands for characters that were not finished.
func (c *cell) unfinished(ctx context.Context) {
	for _, name := range []messages.StreamName{messages.StdoutStream, messages.StderrStream} {
		if s := c.textOf(string(name)).end(); s != "" {
			c.text(ctx, name, s)
		}
	}
}

func (c *cell) textOf(name string) *text {
	if name == ndjson.TypeStderr {
		return &c.raw[1]
	}
	return &c.raw[0]
}

// text passes on text of a stream.
func (c *cell) text(ctx context.Context, name messages.StreamName, s string) {
	if name == messages.StderrStream {
		c.stderr.add(s)
	}
	c.out(ctx, messages.Stream{Name: name, Text: s})
}
