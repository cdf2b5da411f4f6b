package httpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// shape reports where a JSON value is not of the shape of a Go type, where decoding
// would take no notice: a member that is null, which is as if it were not there, and one
// that is missing, though its tag has no omitempty. What is of no fixed type is not
// looked into.
func shape(data []byte, t reflect.Type, at string) error {
	if bytes.Equal(bytes.TrimSpace(data), []byte("null")) {
		if at == "" {
			return fmt.Errorf("it is null")
		}
		return fmt.Errorf("%s is null; leave it out", at)
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[json.RawMessage]() || t.Implements(reflect.TypeFor[json.Unmarshaler]()) || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()):
		return nil
	case t.Kind() == reflect.Struct:
		return members(data, t, at)
	case t.Kind() == reflect.Slice:
		var items []json.RawMessage
		if json.Unmarshal(data, &items) == nil {
			for i, item := range items {
				if err := shape(item, t.Elem(), fmt.Sprintf("%s[%d]", at, i)); err != nil {
					return err
				}
			}
		}
	case t.Kind() == reflect.Map:
		var items map[string]json.RawMessage
		if json.Unmarshal(data, &items) == nil {
			for name, item := range items {
				if err := shape(item, t.Elem(), inside(at, name)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// members looks at those of an object. Their names are as the tags have them, to the
// letter.
func members(data []byte, t reflect.Type, at string) error {
	var items map[string]json.RawMessage
	if err := json.Unmarshal(data, &items); err != nil {
		return inWords(err)
	}
	for f := range t.Fields() {
		parts := strings.Split(f.Tag.Get("json"), ",")
		name := parts[0]
		item, given := items[name]
		delete(items, name)
		switch {
		case name == "" || name == "-":
		case given:
			if err := shape(item, f.Type, inside(at, name)); err != nil {
				return err
			}
		case !slices.Contains(parts, "omitempty") && !slices.Contains(parts, "omitzero"):
			return fmt.Errorf("%s is missing", inside(at, name))
		}
	}
	for name := range items { // decoding takes a name in other letters
		return fmt.Errorf("%s is not known", inside(at, name))
	}
	return nil
}

func inside(at, name string) string {
	if at == "" {
		return fmt.Sprintf("%.40s", name)
	}
	return fmt.Sprintf("%s.%.40s", at, name)
}
