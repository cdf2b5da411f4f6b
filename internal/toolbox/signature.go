package toolbox

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/coppice-run/coppice/internal/pylit"
	"github.com/coppice-run/coppice/internal/toolspec"
)

// maxDefault is the longest default that is shown, in bytes of Python; a longer one is "...".
const maxDefault = 60

// Signature is what a tool takes, as Python writes it, with the brackets:
// (text: str = "hello", top: float = 3). What has no default and may be left out has "...";
// inputs whose keys Python cannot say, and others that code does not give, are not there.
func Signature(t *toolspec.Tool) string {
	var parts []string
	for i := range t.Inputs {
		if in := &t.Inputs[i]; in.Type != "hidden" && isIdentifier(in.Key) {
			parts = append(parts, argument(in))
		}
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

// InputLines describe the inputs of a tool for whoever writes the code that calls it, one
// a line: its type, its default and what it is.
func InputLines(t *toolspec.Tool) string {
	var lines []string
	for i := range t.Inputs {
		in := &t.Inputs[i]
		if in.Type == "hidden" {
			continue
		}
		line := argument(in)
		if !isIdentifier(in.Key) {
			line = pylit.String(in.Key) + strings.TrimPrefix(line, in.Key)
		}
		about := []string{flat(in.Label), flat(in.Description)}
		if about[1] == "" {
			about = about[:1]
		}
		line += "  " + strings.Join(about, ": ")
		if more := bounds(in); more != "" {
			line += " (" + more + ")"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func flat(text string) string { return strings.Join(strings.Fields(text), " ") }

// argument is an input as a signature has it.
func argument(in *toolspec.Input) string {
	text := in.Key
	if kind := pythonType(in); kind != "" {
		text += ": " + kind
	}
	switch {
	case len(in.Default) > 0 && string(in.Default) != "null":
		return text + " = " + pythonDefault(in.Default)
	case !in.MustBeGiven():
		return text + " = ..."
	default:
		return text
	}
}

// bounds are what the type of an input does not say of its values.
func bounds(in *toolspec.Input) string {
	var parts []string
	if len(in.Options) > 0 {
		var options []string
		for _, o := range in.Options {
			options = append(options, python(o.Value))
		}
		parts = append(parts, "of "+strings.Join(options, ", "))
	}
	if in.Min != nil {
		parts = append(parts, "from "+python(*in.Min))
	}
	if in.Max != nil {
		parts = append(parts, "to "+python(*in.Max))
	}
	if in.MaxLength != nil {
		parts = append(parts, fmt.Sprintf("at most %d characters", *in.MaxLength))
	}
	if in.IsFile() {
		parts = append(parts, `{"filename": "a.csv", "data": "<base64>"}, or a data URL`)
	}
	return strings.Join(parts, " ")
}

// pythonType is what Python calls the values of an input; "" when that says too little.
func pythonType(in *toolspec.Input) string {
	switch in.Type {
	case "text", "textarea", "code", "markdown", "date", "time", "datetime", "colour", "autocomplete", "image":
		return "str"
	case "number":
		return "float"
	case "slider":
		if in.Range {
			return "list[float]"
		}
		return "float"
	case "checkbox", "toggle":
		return "bool"
	case "tags":
		return "list[str]"
	case "table":
		return "list[dict]"
	case "multiselect", "map_polygon", "map_multipoint":
		return "list"
	case "file", "audio":
		if in.Multiple {
			return "list[dict]"
		}
		return "dict"
	case "date_range", "map_point", "map_bbox":
		return "dict"
	default:
		return ""
	}
}

func pythonDefault(data json.RawMessage) string {
	var v any
	if json.Unmarshal(data, &v) != nil {
		return "..."
	}
	if text := python(v); len(text) <= maxDefault {
		return text
	}
	return "..."
}

// python is a value of JSON as Python writes it.
func python(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		if v {
			return "True"
		}
		return "False"
	case float64:
		if math.Abs(v) < 1<<53 {
			return strconv.FormatFloat(v, 'f', -1, 64)
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	case string:
		return pylit.String(v)
	case []any:
		parts := make([]string, 0, len(v))
		for _, e := range v {
			parts = append(parts, python(e))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		parts := make([]string, 0, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, pylit.String(key)+": "+python(v[key]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	default:
		return "..." // JSON has no other values
	}
}

// keywords are the words of Python that name no argument.
var keywords = strings.Fields(`False None True and as assert async await break class continue def del elif else except
	finally for from global if import in is lambda nonlocal not or pass raise return try while with yield`)

// isIdentifier says that Python can say a key as the name of an argument. Another is given in
// a dict: tool.shout({"from": "a"}).
func isIdentifier(key string) bool {
	for i, r := range key {
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r)) {
			return false
		}
	}
	return key != "" && !slices.Contains(keywords, key)
}
