package toolspec

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Problem is one thing that is wrong, and where.
type Problem struct {
	// Path is the place in the document: "inputs[0].type"; "" for all of it.
	Path string `json:"path"`
	// Text says what is wrong.
	Text string `json:"text"`
}

// String is the path and the text.
func (p Problem) String() string {
	if p.Path == "" {
		return p.Text
	}
	return p.Path + ": " + p.Text
}

// Error says what is wrong with a tool.json.
type Error struct {
	// File is the file that was read, "" when it was not read from one.
	File     string
	Problems []Problem
}

// maxShown is how many problems the text of an error names.
const maxShown = 5

// Error names the file and the first problems.
func (e *Error) Error() string {
	text := make([]string, 0, maxShown)
	for i, p := range e.Problems {
		if i == maxShown {
			text = append(text, fmt.Sprintf("and %d more", len(e.Problems)-maxShown))
			break
		}
		text = append(text, p.String())
	}
	file := e.File
	if file == "" {
		file = FileName
	}
	return file + ": " + strings.Join(text, "; ")
}

// problems collects what is wrong with one document.
type problems struct{ list []Problem }

func (p *problems) add(path, format string, args ...any) {
	p.list = append(p.list, Problem{Path: path, Text: fmt.Sprintf(format, args...)})
}

// check looks at one value.
type check func(p *problems, path string, v any)

// rule is what an object says of one of its keys.
type rule struct {
	check    check
	required bool
}

func must(c check) rule { return rule{c, true} }
func may(c check) rule  { return rule{c, false} }

// orNull lets null stand for the default.
func orNull(c check) check {
	return func(p *problems, path string, v any) {
		if v != nil {
			c(p, path, v)
		}
	}
}

func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "true or false"
	case float64:
		return "a number"
	case []any:
		return "a list"
	default:
		return "an object"
	}
}

func text(p *problems, path string, v any) {
	if _, ok := v.(string); !ok {
		p.add(path, "expected a string, found %s", typeName(v))
	}
}

func name(p *problems, path string, v any) {
	if s, ok := v.(string); !ok || strings.TrimSpace(s) == "" {
		p.add(path, "expected a string that is not empty, found %s", typeName(v))
	}
}

func boolean(p *problems, path string, v any) {
	if _, ok := v.(bool); !ok {
		p.add(path, "expected true or false, found %s", typeName(v))
	}
}

func number(p *problems, path string, v any) {
	if _, ok := v.(float64); !ok {
		p.add(path, "expected a number, found %s", typeName(v))
	}
}

func anything(*problems, string, any) {}

func integer(low, high float64) check {
	return func(p *problems, path string, v any) {
		n, ok := v.(float64)
		if !ok || n != math.Trunc(n) {
			p.add(path, "expected a whole number, found %s", typeName(v))
			return
		}
		if n < low || n > high {
			p.add(path, "%s is not from %s to %s", plain(n), plain(low), plain(high))
		}
	}
}

func plain(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

func oneOf(values ...string) check {
	return func(p *problems, path string, v any) {
		if s, ok := v.(string); !ok || !slices.Contains(values, s) {
			p.add(path, "%v is not one of %s", shown(v), strings.Join(values, ", "))
		}
	}
}

func shown(v any) string {
	if s, ok := v.(string); ok {
		return strconv.Quote(s)
	}
	return typeName(v)
}

func listOf(c check) check {
	return func(p *problems, path string, v any) {
		list, ok := v.([]any)
		if !ok {
			p.add(path, "expected a list, found %s", typeName(v))
			return
		}
		for i, e := range list {
			c(p, path+"["+strconv.Itoa(i)+"]", e)
		}
	}
}

func point(p *problems, path string, v any) {
	list, ok := v.([]any)
	if !ok || len(list) != 2 {
		p.add(path, "expected two numbers, latitude and longitude")
		return
	}
	for i, e := range list {
		number(p, path+"["+strconv.Itoa(i)+"]", e)
	}
}

// object wants the keys of rules, and no others.
func object(rules map[string]rule) check {
	return func(p *problems, path string, v any) {
		m, ok := v.(map[string]any)
		if !ok {
			p.add(path, "expected an object, found %s", typeName(v))
			return
		}
		checkKeys(p, path, m, rules)
	}
}

func checkKeys(p *problems, path string, m map[string]any, rules map[string]rule) {
	at := func(key string) string {
		if path == "" {
			return key
		}
		return path + "." + key
	}
	for _, key := range sortedKeys(m) {
		r, known := rules[key]
		if !known {
			p.add(at(key), "the key is not known%s", suggest(key, rules))
			continue
		}
		r.check(p, at(key), m[key])
	}
	for _, key := range sortedKeys(rules) {
		if _, there := m[key]; rules[key].required && !there {
			p.add(at(key), "the key is missing")
		}
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// suggest names the known key that differs least, if one is close.
func suggest(key string, rules map[string]rule) string {
	best, distance := "", 3
	for _, k := range sortedKeys(rules) {
		if d := editDistance(key, k); d < distance {
			best, distance = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// editDistance counts the insertions, deletions and changes between two keys.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
