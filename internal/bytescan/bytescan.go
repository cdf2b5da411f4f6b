package bytescan

import (
	"encoding/binary"
	"math/bits"
)

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// less marks the bytes of w that are below c, which is at most 0x80, by their high bits. A
// byte above a marked one may be marked though it is not below c: the subtraction has
// borrowed from it. The lowest mark is always right.
func less(w uint64, c byte) uint64 { return (w - ones*uint64(c)) &^ w & highs }

// same marks the bytes of w that are c, in the same way.
func same(w uint64, c byte) uint64 { return less(w^ones*uint64(c), 1) }

// JSONString returns how many bytes at the start of b stand for themselves in a string of
// JSON: none of them is a quote, a backslash or below space (RFC 8259 section 7).
func JSONString(b []byte) int {
	i := 0
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		if m := less(w, ' ') | same(w, '"') | same(w, '\\'); m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c < ' ' || c == '"' || c == '\\' {
			break
		}
	}
	return i
}

// Printable returns how many bytes at the start of s are printable ASCII, 0x20 to 0x7e.
func Printable(s string) int {
	i := 0
	for ; i+8 <= len(s); i += 8 {
		w := uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
			uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
		if m := w&highs | less(w, ' ') | same(w, 0x7f); m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c < ' ' || c > 0x7e {
			break
		}
	}
	return i
}
