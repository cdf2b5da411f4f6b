package notebook

import (
	"bytes"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// decodeString returns the text of a string literal, quotes included in raw.
// A lone surrogate, which Go's strings cannot hold, becomes U+FFFD.
func decodeString(raw []byte) string {
	body := raw[1 : len(raw)-1]
	if bytes.IndexByte(body, '\\') < 0 {
		return string(body)
	}
	var b strings.Builder
	b.Grow(len(body))
	for len(body) > 0 {
		i := bytes.IndexByte(body, '\\')
		if i < 0 {
			b.Write(body)
			break
		}
		b.Write(body[:i])
		r, n := decodeEscape(body[i:])
		b.WriteRune(r)
		body = body[i+n:]
	}
	return b.String()
}

// decodeEscape decodes the escape that body starts with, and tells its length:
// two bytes, six, or twelve for a surrogate pair.
func decodeEscape(body []byte) (rune, int) {
	switch c := body[1]; c {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		r := hex4(body[2:])
		if !utf16.IsSurrogate(r) {
			return r, 6
		}
		if len(body) >= 12 && body[6] == '\\' && body[7] == 'u' {
			if both := utf16.DecodeRune(r, hex4(body[8:])); both != utf8.RuneError {
				return both, 12
			}
		}
		return utf8.RuneError, 6
	default: // quote, backslash, slash
		return rune(c), 2
	}
}

func hex4(b []byte) rune {
	var r rune
	for _, c := range b[:4] {
		d, _ := hexDigit(c)
		r = r<<4 | d
	}
	return r
}

// appendString appends s as a string literal the way Python's json module
// spells it, which nearly all writers of notebooks do: the short escapes,
// \u00xx in lower case for other control characters, and with ascii set
// everything past 0x7e as well.
func appendString(dst []byte, s string, ascii bool) []byte {
	dst = append(dst, '"')
	dst = appendStringBody(dst, s, ascii)
	return append(dst, '"')
}

func appendStringBody(dst []byte, s string, ascii bool) []byte {
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			switch {
			case c == '"' || c == '\\':
				dst = append(dst, '\\', c)
			case c >= ' ' && (c != 0x7f || !ascii):
				dst = append(dst, c)
			default:
				dst = appendControl(dst, c)
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case ascii:
			dst = appendUnicode(dst, r)
		case r == utf8.RuneError && n == 1:
			dst = utf8.AppendRune(dst, utf8.RuneError)
		default:
			dst = append(dst, s[i:i+n]...)
		}
		i += n
	}
	return dst
}

func appendControl(dst []byte, c byte) []byte {
	switch c {
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	return appendUnicode(dst, rune(c))
}

func appendUnicode(dst []byte, r rune) []byte {
	if hi, lo := utf16.EncodeRune(r); hi != utf8.RuneError {
		return appendUnit(appendUnit(dst, hi), lo)
	}
	return appendUnit(dst, r)
}

func appendUnit(dst []byte, u rune) []byte {
	const digits = "0123456789abcdef"
	return append(dst, '\\', 'u', digits[u>>12&15], digits[u>>8&15], digits[u>>4&15], digits[u&15])
}

// escapeNonASCII rewrites a string literal so that it is pure ASCII. A literal
// that is already is returned as it came.
func escapeNonASCII(raw []byte) []byte {
	if isASCII(raw) {
		return raw
	}
	out := make([]byte, 0, len(raw)+len(raw)/2)
	for i := 0; i < len(raw); {
		r, n := utf8.DecodeRune(raw[i:])
		if r < utf8.RuneSelf {
			out = append(out, raw[i])
		} else {
			out = appendUnicode(out, r)
		}
		i += n
	}
	return out
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// literalLine is one line of a string literal: its spelling and its text, each
// with the newline that ends it.
type literalLine struct {
	raw  []byte
	text string
	// newline is the length of the escape that spells the newline, 0 when the
	// line has none.
	newline int
}

// splitLiteral splits a string literal, quotes included in raw, at its
// newlines. Joining the parts' raw gives the literal's body.
func splitLiteral(raw []byte) []literalLine {
	body := raw[1 : len(raw)-1]
	var lines []literalLine
	start := 0
	for i := 0; i < len(body); {
		next := bytes.IndexByte(body[i:], '\\')
		if next < 0 {
			break
		}
		i += next
		r, n := decodeEscape(body[i:])
		i += n
		if r == '\n' {
			lines = append(lines, makeLiteralLine(body[start:i], n))
			start = i
		}
	}
	if start < len(body) {
		lines = append(lines, makeLiteralLine(body[start:], 0))
	}
	return lines
}

func makeLiteralLine(body []byte, newline int) literalLine {
	quoted := make([]byte, 0, len(body)+2)
	quoted = append(append(append(quoted, '"'), body...), '"')
	return literalLine{raw: body, text: decodeString(quoted), newline: newline}
}

// SplitLines splits a source as notebook JSON stores it: each piece keeps the
// newline that ends it, a last line without one is kept as it is, and an empty
// text has no pieces. Joining the pieces gives the text back.
func SplitLines(text string) []string {
	if text == "" {
		return []string{}
	}
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}
