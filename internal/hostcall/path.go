package hostcall

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// PathAt returns the path of the value of a JSON document that a
// [json.UnmarshalTypeError] with that Offset is about: "cells[1].code", or "" for the
// document itself. The error's own path has no indices. Any goroutine may call it.
func PathAt(document []byte, offset int64) string {
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber() // one that is too large for a float has a place, too
	var open pathTo
	for {
		t, err := d.Token()
		if err != nil {
			return "" // no such place: the document is another one
		}
		switch n := len(open); {
		case t == json.Delim('}') || t == json.Delim(']'):
			open = open[:n-1]
		case n > 0 && open[n-1].wantsKey():
			open[n-1].key, open[n-1].value = t.(string), true
			continue
		case d.InputOffset() >= offset: // the end of a word or a number, else the first byte inside
			return open.String()
		case t == json.Delim('{') || t == json.Delim('['):
			open = append(open, pathStep{list: t == json.Delim('[')})
			continue
		}
		if n := len(open); n > 0 {
			open[n-1].index++
			open[n-1].value = false
		}
	}
}

// pathTo are the lists and objects around a value, the outermost first.
type pathTo []pathStep

// pathStep is a list with the index of the value, or an object with its key.
type pathStep struct {
	list  bool
	index int
	key   string
	value bool // of an object: its key was read, and the value comes next
}

func (s pathStep) wantsKey() bool { return !s.list && !s.value }

// String writes the path as a person would.
func (p pathTo) String() string {
	var b strings.Builder
	for _, s := range p {
		switch {
		case s.list:
			fmt.Fprintf(&b, "[%d]", s.index)
		case b.Len() > 0:
			b.WriteString("." + s.key)
		default:
			b.WriteString(s.key)
		}
	}
	return b.String()
}
