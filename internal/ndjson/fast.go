package ndjson

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/coppice-run/coppice/internal/bytescan"
	"github.com/coppice-run/coppice/messages"
)

// parseFast reads the frames that most cells consist of, in the form in which
// runners write them: a flat object without blanks whose members are numbers,
// booleans and strings, or "data" with strings as values. It reports false for
// every other form, also for what is not valid; f is then of no use and
// encoding/json has the last word. It is ten times as fast.
func parseFast(line []byte, f *Frame) bool {
	s := scanner{rest: line}
	if !s.next('{') {
		return false
	}
	for {
		name, ok := s.raw()
		if !ok || !s.next(':') {
			return false
		}
		if !s.member(name, f) {
			return false
		}
		if s.next('}') {
			return len(s.rest) == 0 && f.Type != ""
		}
		if !s.next(',') {
			return false
		}
	}
}

// scanner cuts tokens off the start of rest.
type scanner struct{ rest []byte }

func (s *scanner) next(c byte) bool {
	if len(s.rest) == 0 || s.rest[0] != c {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

// member reads the value of one member.
func (s *scanner) member(name []byte, f *Frame) bool {
	switch string(name) {
	case "id":
		return s.number(&f.ID)
	case "seq":
		return s.number(&f.Seq)
	case "n":
		return s.number(&f.N)
	case "type":
		raw, ok := s.raw()
		f.Type = typeName(raw)
		return ok
	case "text":
		return s.text(&f.Text)
	case "late":
		return s.boolean(&f.Late)
	case "ok":
		return s.boolean(&f.OK)
	case "interrupted":
		return s.boolean(&f.Interrupted)
	case "stdin_requested":
		return s.boolean(&f.StdinRequested)
	case "count":
		var n uint64
		ok := s.number(&n)
		f.Count = int(n)
		return ok && n < 1<<31
	case "raw":
		var n uint64
		ok := s.number(&n)
		f.Raw = int(n)
		return ok && n <= MaxRaw
	case "seconds":
		return s.float(&f.Seconds)
	case "data":
		return s.bundle(f)
	default:
		return false
	}
}

// typeName returns the constants for the types that parseFast meets, so that
// they cost no memory, and "" for all others.
func typeName(raw []byte) string {
	switch string(raw) {
	case TypeStdout:
		return TypeStdout
	case TypeStderr:
		return TypeStderr
	case TypeResult:
		return TypeResult
	case TypeDone:
		return TypeDone
	case TypeStarted:
		return TypeStarted
	case TypePong:
		return TypePong
	default:
		return ""
	}
}

// number reads a number of at most 18 digits.
func (s *scanner) number(n *uint64) bool {
	b, i := s.rest, 0
	*n = 0
	for i < len(b) && i < 19 && '0' <= b[i] && b[i] <= '9' {
		*n = *n*10 + uint64(b[i]-'0')
		i++
	}
	s.rest = b[i:]
	return i > 0 && i < 19 && (b[0] != '0' || i == 1)
}

// float reads digits, a point and digits.
func (s *scanner) float(v *float64) bool {
	i := 0
	for i < len(s.rest) && ('0' <= s.rest[i] && s.rest[i] <= '9' || s.rest[i] == '.') {
		i++
	}
	b := s.rest[:i]
	point := bytes.IndexByte(b, '.')
	if point <= 0 || point == i-1 || (b[0] == '0' && point > 1) {
		return false
	}
	s.rest = s.rest[i:]
	var err error
	*v, err = strconv.ParseFloat(string(b), 64)
	return err == nil
}

func (s *scanner) boolean(v *bool) bool {
	rest, ok := bytes.CutPrefix(s.rest, []byte("true"))
	if *v = ok; !ok {
		rest, ok = bytes.CutPrefix(s.rest, []byte("false"))
	}
	s.rest = rest
	return ok
}

// raw reads a string without escapes and returns what is between its quotes.
func (s *scanner) raw() ([]byte, bool) {
	if !s.next('"') {
		return nil, false
	}
	i := bytescan.JSONString(s.rest)
	if i == len(s.rest) || s.rest[i] != '"' || !utf8.Valid(s.rest[:i]) {
		return nil, false
	}
	raw := s.rest[:i]
	s.rest = s.rest[i+1:]
	return raw, true
}

// text reads a string and undoes its escapes.
func (s *scanner) text(v *string) bool {
	quoted, ok := s.quoted()
	if !ok {
		return false
	}
	*v = bytescan.Unquote(quoted)
	return true
}

// quoted reads a string and returns it as it stands, quotes included.
func (s *scanner) quoted() ([]byte, bool) {
	quoted, rest, ok := bytescan.Quoted(s.rest)
	if ok {
		s.rest = rest
	}
	return quoted, ok
}

// bundle reads an object whose values are strings.
func (s *scanner) bundle(f *Frame) bool {
	if !s.next('{') {
		return false
	}
	if f.Data == nil { // a second one adds to the first, as in encoding/json
		f.Data = messages.Bundle{}
	}
	for {
		mime, ok := s.raw()
		if !ok || !s.next(':') {
			return false
		}
		value, ok := s.quoted()
		if !ok {
			return false
		}
		f.Data[string(mime)] = bytes.Clone(value)
		if s.next('}') {
			return true
		}
		if !s.next(',') {
			return false
		}
	}
}
