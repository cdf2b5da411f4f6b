package ndjson

import (
	"bytes"
	"unicode/utf8"
)

// parseText reads the frames that a flood of output is made of, in the one form
// in which runners write them:
//
//	{"id":1,"seq":2,"type":"stdout","text":"…"}
//
// It reports false for every other form, also for what is not valid; f is then
// of no use. It is several times as fast as encoding/json, which looks at every
// byte three times.
func parseText(line []byte, f *Frame) bool {
	rest, ok := bytes.CutPrefix(line, []byte(`{"id":`))
	if !ok {
		return false
	}
	if f.ID, rest, ok = cutNumber(rest); !ok {
		return false
	}
	if rest, ok = bytes.CutPrefix(rest, []byte(`,"seq":`)); !ok {
		return false
	}
	if f.Seq, rest, ok = cutNumber(rest); !ok {
		return false
	}
	switch {
	case bytes.HasPrefix(rest, []byte(`,"type":"stdout","text":"`)):
		f.Type = TypeStdout
	case bytes.HasPrefix(rest, []byte(`,"type":"stderr","text":"`)):
		f.Type = TypeStderr
	default:
		return false
	}
	rest = rest[len(`,"type":"stdout","text":"`):]
	if rest, ok = bytes.CutSuffix(rest, []byte(`"}`)); !ok || !utf8.Valid(rest) {
		return false
	}
	f.Text, ok = unquote(rest)
	return ok
}

// cutNumber reads a number of at most 18 digits from the start of b.
func cutNumber(b []byte) (uint64, []byte, bool) {
	var n uint64
	i := 0
	for i < len(b) && i < 19 && '0' <= b[i] && b[i] <= '9' {
		n = n*10 + uint64(b[i]-'0')
		i++
	}
	return n, b[i:], i > 0 && i < 19 && (b[0] != '0' || i == 1)
}

// escapes are the characters that stand for themselves after a backslash, or
// for a control character.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unquote undoes the escapes of a JSON string without its quotes. \u escapes
// are left to encoding/json: text holds few.
func unquote(b []byte) (string, bool) {
	i := plain(b)
	if i == len(b) {
		return string(b), true
	}
	out := make([]byte, 0, len(b))
	for {
		out = append(out, b[:i]...)
		b = b[i:]
		if len(b) == 0 {
			return string(out), true
		}
		if b[0] != '\\' || len(b) < 2 || escapes[b[1]] == 0 {
			return "", false
		}
		out = append(out, escapes[b[1]])
		b = b[2:]
		i = plain(b)
	}
}

// plain returns how many bytes at the start of b stand for themselves.
func plain(b []byte) int {
	for i, c := range b {
		if c == '\\' || c == '"' || c < 0x20 {
			return i
		}
	}
	return len(b)
}
