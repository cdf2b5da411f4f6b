package hostcall

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Listed is a function as code sees it.
type Listed struct {
	Name        string `json:"name"`
	Signature   string `json:"signature"`
	Description string `json:"description"`
}

// list is what the call's code can call, by name.
func (d *Calls) list(ctx context.Context) []Listed {
	all := maps.Clone(d.host.tools(ctx))
	if all == nil {
		all = map[string]Function{}
	}
	maps.Copy(all, d.functions)
	list := make([]Listed, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, Listed{name, all[name].Signature, all[name].Description})
	}
	return list
}

var (
	raws    = reflect.TypeFor[json.RawMessage]()
	readers = reflect.TypeFor[json.Unmarshaler]()
)

// signature is what a struct of arguments takes, as Python writes it; "" for other
// types.
func signature(in reflect.Type) string {
	if in.Kind() != reflect.Struct || reflect.PointerTo(in).Implements(readers) {
		return ""
	}
	var parts []string
	for f := range in.Fields() {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || f.Tag.Get("json") == "-" {
			continue
		}
		if f.Anonymous && tag == "" {
			return "" // its fields are arguments too
		}
		if tag == "" {
			tag = lower(f.Name)
		}
		part := tag
		if kind := pythonType(f.Type); kind != "" {
			part += ": " + kind
		}
		if f.Type.Kind() == reflect.Pointer || strings.Contains(f.Tag.Get("json"), ",omit") {
			part += " = ..."
		}
		parts = append(parts, part)
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

// lower is a name of Go as code is likely to write it; case does not count.
func lower(name string) string {
	if strings.ToUpper(name) == name {
		return strings.ToLower(name)
	}
	r, n := utf8.DecodeRuneInString(name)
	return string(unicode.ToLower(r)) + name[n:]
}

// pythonType is what Python calls a type; "" when that says too little.
func pythonType(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == raws || reflect.PointerTo(t).Implements(readers) {
		return ""
	}
	switch t.Kind() {
	case reflect.String:
		return "str"
	case reflect.Bool:
		return "bool"
	case reflect.Float32, reflect.Float64:
		return "float"
	case reflect.Struct, reflect.Map:
		return "dict"
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return "str" // base64
		}
		if of := pythonType(t.Elem()); of != "" {
			return "list[" + of + "]"
		}
		return "list"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "int"
	default:
		return ""
	}
}
