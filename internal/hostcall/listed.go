package hostcall

import (
	"context"
	"encoding/json"
	"fmt"
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
	Help        string `json:"help,omitempty"`
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
		list = append(list, Listed{name, all[name].Signature, all[name].Description, all[name].Help})
	}
	return list
}

var (
	raws    = reflect.TypeFor[json.RawMessage]()
	readers = reflect.TypeFor[json.Unmarshaler]()
)

// argument is one that a struct of arguments has.
type argument struct {
	name     string
	of       reflect.Type
	optional bool
}

// argumentsOf returns those of a struct; false for other types, of which none are known.
func argumentsOf(in reflect.Type) (all []argument, known bool) {
	if in.Kind() != reflect.Struct || reflect.PointerTo(in).Implements(readers) {
		return nil, false
	}
	for f := range in.Fields() {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Tag.Get("json") == "-" || !f.IsExported() && !f.Anonymous {
			continue
		}
		if f.Anonymous && tag == "" {
			return nil, false // its fields are arguments too
		}
		if tag == "" {
			tag = lower(f.Name)
		}
		optional := f.Type.Kind() == reflect.Pointer || strings.Contains(f.Tag.Get("json"), ",omit")
		all = append(all, argument{tag, f.Type, optional})
	}
	return all, true
}

// signature is what a struct of arguments takes, as Python writes it; "" for other
// types.
func signature(in reflect.Type) string {
	all, known := argumentsOf(in)
	if !known {
		return ""
	}
	parts := make([]string, len(all))
	for i, a := range all {
		parts[i] = a.name
		if kind := pythonType(a.of); kind != "" {
			parts[i] += ": " + kind
		}
		if a.optional {
			parts[i] += " = ..."
		}
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

// required are the arguments that a call has to have.
func required(in reflect.Type) []argument {
	all, _ := argumentsOf(in)
	return slices.DeleteFunc(all, func(a argument) bool { return a.optional })
}

// missing returns what is wrong with a JSON object that is to have these arguments; "": nothing.
// The decoder would leave those zero that are not there, and those that are null.
func missing(args []byte, needs []argument) string {
	if len(needs) == 0 {
		return ""
	}
	var given map[string]json.RawMessage
	if json.Unmarshal(args, &given) != nil {
		return "" // the decoder says what is wrong
	}
	var gone []string
	for _, a := range needs {
		value, there := given[a.name]
		for name := range given {
			if !there && strings.EqualFold(name, a.name) { // as the decoder finds it
				value, there = given[name], true
			}
		}
		switch {
		case !there:
			gone = append(gone, "'"+a.name+"'")
		case string(value) == "null" && scalar(a.of):
			return fmt.Sprintf("%s must be %s, not None", a.name, JSONName(a.of.Kind().String()))
		}
	}
	switch len(gone) {
	case 0:
		return ""
	case 1:
		return "the required argument " + gone[0] + " is missing"
	default:
		return "the required arguments " + strings.Join(gone, ", ") + " are missing"
	}
}

// scalar reports whether a value of this type is a text, a number or a truth, which nothing is not.
func scalar(t reflect.Type) bool {
	switch pythonType(t) {
	case "str", "bool", "int", "float":
		return t.Kind() != reflect.Slice && t.Kind() != reflect.Array && t.Kind() != reflect.Pointer // bytes
	default:
		return false
	}
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
