package toolspec

import (
	"bytes"
	"encoding/json"
	"iter"
	"strconv"
)

// Object returns a JSON object without the blanks between its parts, and the values of
// it by key. All are parts of data, which is changed, and of which nothing is copied: a
// large answer is in the memory once. Of a key that is there twice the last value
// counts. The error is that of the JSON; nil members: data is JSON, and no object,
// and not changed.
func Object(data []byte) (whole json.RawMessage, members map[string]json.RawMessage, err error) {
	if err := valid(data); err != nil {
		return nil, nil, err
	}
	r := raw(data)
	if r[r.skip(0)] != '{' {
		return data, nil, nil
	}
	r = r.squeezed()
	members, _ = r.members()
	return json.RawMessage(r), members, nil
}

// valid returns what is wrong with a document, nil when nothing is.
func valid(data []byte) error {
	if json.Valid(data) {
		return nil
	}
	var v json.RawMessage
	return json.Unmarshal(data, &v)
}

// raw is one value of JSON that is known to be valid, from its first byte on. Something
// may follow it.
type raw []byte

// blanks are what may stand between the parts of a document.
const blanks = " \t\r\n"

// skip is the place of the first byte from i on that is no blank.
func (r raw) skip(i int) int {
	for i < len(r) && (r[i] == ' ' || r[i] == '\t' || r[i] == '\r' || r[i] == '\n') {
		i++
	}
	return i
}

// text is the end of the string that begins at i.
func (r raw) text(i int) int {
	for i++; r[i] != '"'; i++ {
		if r[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// value is the end of the value that begins at i.
func (r raw) value(i int) int {
	switch r[i] {
	case '"':
		return r.text(i)
	case '{', '[':
		for depth := 0; ; {
			switch r[i] {
			case '"':
				i = r.text(i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			}
			if i++; depth == 0 {
				return i
			}
		}
	default:
		end := bytes.IndexAny(r[i:], ",]}"+blanks)
		if end < 0 {
			return len(r)
		}
		return i + end
	}
}

// squeezed is the value without blanks between its parts. It takes the place of r.
func (r raw) squeezed() raw {
	out := r[:0]
	for i := r.skip(0); i < len(r); i = r.skip(i) {
		end := i + 1
		if r[i] == '"' {
			end = r.text(i)
		}
		out = append(out, r[i:end]...)
		i = end
	}
	return out
}

// members are the values of an object.
func (r raw) members() (map[string]json.RawMessage, bool) {
	if len(r) == 0 || r[0] != '{' {
		return nil, false
	}
	all := map[string]json.RawMessage{}
	for i := r.skip(1); r[i] != '}'; {
		end := r.text(i)
		var key string
		_ = json.Unmarshal(r[i:end], &key) // it is valid
		i = r.skip(r.skip(end) + 1)        // the colon
		end = r.value(i)
		all[key] = json.RawMessage(r[i:end:end])
		if i = r.skip(end); r[i] == ',' {
			i = r.skip(i + 1)
		}
	}
	return all, true
}

// elements are those of a list.
func (r raw) elements() iter.Seq[raw] {
	return func(yield func(raw) bool) {
		for i := r.skip(1); r[i] != ']'; {
			end := r.value(i)
			if !yield(r[i:end:end]) {
				return
			}
			if i = r.skip(end); r[i] == ',' {
				i = r.skip(i + 1)
			}
		}
	}
}

// tooLarge says that the value is a number that no program here can hold.
func (r raw) tooLarge() bool {
	if r[0] != '-' && (r[0] < '0' || r[0] > '9') {
		return false
	}
	_, err := strconv.ParseFloat(string(r[:r.value(0)]), 64)
	return err != nil
}

// is says what the value is, in words.
func (r raw) is() string {
	switch r[0] {
	case 'n':
		return "null"
	case '"':
		return "a string"
	case 't', 'f':
		return "true or false"
	case '[':
		return "a list"
	case '{':
		return "an object"
	default:
		return "a number"
	}
}
