package bytescan

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// escapes are the characters that stand for themselves after a backslash, or
// for a control character. \u is left to encoding/json: text holds few.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// Quoted cuts the string of JSON off that b begins with, quotes included. It reports false
// for what is none, for one with a \u escape, and for one that is not UTF-8:
// encoding/json has the last word on these.
func Quoted(b []byte) (quoted, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != '"' {
		return nil, b, false
	}
	for i := 1; i < len(b); i++ {
		i += JSONString(b[i:])
		if i == len(b) {
			return nil, b, false
		}
		switch b[i] {
		case '"':
			return b[:i+1], b[i+1:], utf8.Valid(b[:i+1])
		case '\\':
			i++
			if i == len(b) || escapes[b[i]] == 0 {
				return nil, b, false
			}
		default:
			return nil, b, false
		}
	}
	return nil, b, false
}

// Unquote returns what a string says that Quoted has cut off.
func Unquote(quoted []byte) string {
	b := quoted[1 : len(quoted)-1]
	i := bytes.IndexByte(b, '\\')
	if i < 0 {
		return string(b)
	}
	var out strings.Builder
	out.Grow(len(b))
	for {
		out.Write(b[:i])
		out.WriteByte(escapes[b[i+1]])
		b = b[i+2:]
		if i = bytes.IndexByte(b, '\\'); i < 0 {
			out.Write(b)
			return out.String()
		}
	}
}
