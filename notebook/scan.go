package notebook

import (
	"fmt"
	"unicode/utf8"

	"github.com/coppice-run/coppice/internal/bytescan"
)

// maxDepth is how deeply arrays and objects may nest. Real notebooks stay
// under twenty; the limit keeps the walk over a hostile file bounded.
const maxDepth = 10000

// syntaxError is where and why bytes are not JSON.
type syntaxError struct {
	offset int
	reason string
}

func (e *syntaxError) Error() string { return fmt.Sprintf("offset %d: %s", e.offset, e.reason) }

// scanner walks JSON text (RFC 8259) without decoding it. It accepts, besides,
// the literals NaN, Infinity and -Infinity: Python's json module writes them,
// so notebooks in the field hold them.
type scanner struct {
	src []byte
	pos int
	// stack holds the closing bracket of each container that skip is in. It
	// begins in shallow, so that ordinary values cost no allocation.
	stack   []byte
	shallow [32]byte
	// nonFinite is the offset of the first NaN or Infinity, -1 when none was
	// seen.
	nonFinite int
}

func newScanner(src []byte) *scanner { return &scanner{src: src, nonFinite: -1} }

func (s *scanner) fail(format string, args ...any) error {
	return &syntaxError{offset: s.pos, reason: fmt.Sprintf(format, args...)}
}

// space passes white space and returns it.
func (s *scanner) space() []byte {
	start := s.pos
	for s.pos < len(s.src) && isSpace(s.src[s.pos]) {
		s.pos++
	}
	return s.src[start:s.pos:s.pos]
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// peek returns the next byte, 0 at the end. A NUL byte in the text is no
// confusion: it starts no token.
func (s *scanner) peek() byte {
	if s.pos < len(s.src) {
		return s.src[s.pos]
	}
	return 0
}

// describe names the next byte for an error.
func (s *scanner) describe() string {
	if s.pos >= len(s.src) {
		return "end of file"
	}
	r, _ := utf8.DecodeRune(s.src[s.pos:])
	return fmt.Sprintf("%q", r)
}

// skip passes one value, containers with all they hold, and checks its syntax.
// It does not recurse: depth costs one byte of stack.
func (s *scanner) skip() error {
	if s.stack == nil {
		s.stack = s.shallow[:0]
	}
	s.stack = s.stack[:0]
	for {
		switch c := s.peek(); c {
		case '{', '[':
			if len(s.stack) == maxDepth {
				return s.fail("nested deeper than %d", maxDepth)
			}
			s.pos++
			s.space()
			closing := byte('}')
			if c == '[' {
				closing = ']'
			}
			if s.peek() != closing {
				s.stack = append(s.stack, closing)
				if closing == '}' {
					if err := s.memberName(); err != nil {
						return err
					}
				}
				continue
			}
			s.pos++
		default:
			if err := s.scalar(); err != nil {
				return err
			}
		}
		done, err := s.afterValue()
		if done || err != nil {
			return err
		}
	}
}

// afterValue passes the brackets that end with the value just read and the
// comma before the next one; done is set when no container is left open.
func (s *scanner) afterValue() (done bool, err error) {
	for len(s.stack) > 0 {
		s.space()
		closing := s.stack[len(s.stack)-1]
		switch s.peek() {
		case closing:
			s.pos++
			s.stack = s.stack[:len(s.stack)-1]
		case ',':
			s.pos++
			s.space()
			if closing == '}' {
				return false, s.memberName()
			}
			return false, nil
		default:
			return false, s.fail("expected ',' or %q, found %s", closing, s.describe())
		}
	}
	return true, nil
}

// memberName passes a name, its colon and the space before the value.
func (s *scanner) memberName() error {
	if s.peek() != '"' {
		return s.fail("expected a member name in quotes, found %s", s.describe())
	}
	if err := s.str(); err != nil {
		return err
	}
	s.space()
	if s.peek() != ':' {
		return s.fail("expected ':', found %s", s.describe())
	}
	s.pos++
	s.space()
	return nil
}

// scalar passes a string, a number or a literal.
func (s *scanner) scalar() error {
	switch c := s.peek(); {
	case c == '"':
		return s.str()
	case c == '-' || c >= '0' && c <= '9':
		return s.number()
	case c == 't':
		return s.literal("true")
	case c == 'f':
		return s.literal("false")
	case c == 'n':
		return s.literal("null")
	case c == 'N':
		return s.literal("NaN")
	case c == 'I':
		return s.literal("Infinity")
	default:
		return s.fail("expected a value, found %s", s.describe())
	}
}

func (s *scanner) literal(word string) error {
	if len(s.src)-s.pos < len(word) || string(s.src[s.pos:s.pos+len(word)]) != word {
		return s.fail("expected a value, found %s", s.describe())
	}
	if (word[0] == 'N' || word[0] == 'I') && s.nonFinite < 0 {
		s.nonFinite = s.pos
	}
	s.pos += len(word)
	return nil
}

func (s *scanner) number() error {
	if s.peek() == '-' {
		s.pos++
		if s.peek() == 'I' {
			return s.literal("Infinity")
		}
	}
	if s.peek() == '0' {
		s.pos++
	} else if !s.digits() {
		return s.fail("expected a digit, found %s", s.describe())
	}
	if s.peek() == '.' {
		s.pos++
		if !s.digits() {
			return s.fail("expected a digit after the decimal point, found %s", s.describe())
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.pos++
		if c := s.peek(); c == '+' || c == '-' {
			s.pos++
		}
		if !s.digits() {
			return s.fail("expected a digit in the exponent, found %s", s.describe())
		}
	}
	return nil
}

func (s *scanner) digits() bool {
	start := s.pos
	for s.pos < len(s.src) && s.src[s.pos] >= '0' && s.src[s.pos] <= '9' {
		s.pos++
	}
	return s.pos > start
}

// str passes a string. Base64 images make strings the bulk of a large
// notebook, so the ordinary bytes are passed eight at a time.
func (s *scanner) str() error {
	s.pos++
	for {
		s.pos += bytescan.JSONString(s.src[s.pos:])
		if s.pos >= len(s.src) {
			return s.fail("unterminated string")
		}
		switch c := s.src[s.pos]; {
		case c == '"':
			s.pos++
			return nil
		case c == '\\':
			if err := s.escape(); err != nil {
				return err
			}
		case c < ' ':
			return s.fail("control character %q in a string", c)
		default:
			s.pos++
		}
	}
}

func (s *scanner) escape() error {
	s.pos++
	switch s.peek() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.pos++
		return nil
	case 'u':
		s.pos++
		for range 4 {
			if _, ok := hexDigit(s.peek()); !ok {
				return s.fail("expected a hexadecimal digit, found %s", s.describe())
			}
			s.pos++
		}
		return nil
	}
	return s.fail("unknown escape, found %s", s.describe())
}

func hexDigit(c byte) (rune, bool) {
	switch {
	case c >= '0' && c <= '9':
		return rune(c - '0'), true
	case c >= 'a' && c <= 'f':
		return rune(c-'a') + 10, true
	case c >= 'A' && c <= 'F':
		return rune(c-'A') + 10, true
	}
	return 0, false
}
