package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// change is one place of the code with what stands there instead.
type change struct {
	// file is its path in the repository, kind what gremlins calls the change.
	file, kind   string
	line, column int
	from, to     string
	// source is the line it is in.
	source string
}

func (c change) String() string {
	return fmt.Sprintf("%s:%d:%d %s", c.file, c.line, c.column, c.kind)
}

// tokens are what each kind of change puts in the place of what. Longer ones come first.
var tokens = map[string][][2]string{
	"ARITHMETIC_BASE":         {{"+", "-"}, {"-", "+"}, {"*", "/"}, {"/", "*"}, {"%", "*"}},
	"CONDITIONALS_BOUNDARY":   {{"<=", "<"}, {">=", ">"}, {"<", "<="}, {">", ">="}},
	"CONDITIONALS_NEGATION":   {{"==", "!="}, {"!=", "=="}, {"<=", ">"}, {">=", "<"}, {"<", ">="}, {">", "<="}},
	"INCREMENT_DECREMENT":     {{"++", "--"}, {"--", "++"}},
	"INVERT_ASSIGNMENTS":      {{"+=", "-="}, {"-=", "+="}, {"*=", "/="}, {"/=", "*="}},
	"INVERT_LOGICAL":          {{"&&", "||"}, {"||", "&&"}},
	"INVERT_LOOPCTRL":         {{"break", "continue"}, {"continue", "break"}},
	"INVERT_NEGATIVES":        {{"-", "+"}},
	"REMOVE_SELF_ASSIGNMENTS": {{"+=", "="}, {"-=", "="}, {"*=", "="}, {"/=", "="}, {"%=", "="}},
}

// report is what gremlins writes.
type report struct {
	Files []struct {
		Name      string `json:"file_name"`
		Mutations []struct {
			Type   string `json:"type"`
			Line   int    `json:"line"`
			Column int    `json:"column"`
		} `json:"mutations"`
	} `json:"files"`
}

// changes reads which changes a report names. What two kinds do alike is there once.
func changes(text []byte, tree, dir string) ([]change, error) {
	var r report
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("read what gremlins has found: %w", err)
	}
	var all []change
	for _, f := range r.Files {
		name := path.Join(dir, filepath.ToSlash(f.Name))
		source, err := os.ReadFile(filepath.Join(tree, filepath.FromSlash(name)))
		if err != nil {
			return nil, fmt.Errorf("read what is to be changed: %w", err)
		}
		lines := strings.Split(string(source), "\n")
		for _, m := range f.Mutations {
			c := change{file: name, kind: m.Type, line: m.Line, column: m.Column}
			if m.Line < 1 || m.Line > len(lines) || m.Column < 1 || m.Column > len(lines[m.Line-1]) {
				return nil, fmt.Errorf("%v: the file has no such place: it is another than gremlins has read", c)
			}
			c.source = lines[m.Line-1]
			for _, t := range tokens[c.kind] {
				if strings.HasPrefix(c.source[c.column-1:], t[0]) {
					c.from, c.to = t[0], t[1]
					break
				}
			}
			if c.to == "" {
				return nil, fmt.Errorf("%v: nothing is known that could stand there instead of %q", c, c.source[c.column-1:])
			}
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line), cmp.Compare(a.column, b.column), cmp.Compare(a.to, b.to), cmp.Compare(a.kind, b.kind))
	})
	return slices.CompactFunc(all, func(a, b change) bool {
		return a.file == b.file && a.line == b.line && a.column == b.column && a.to == b.to
	}), nil
}

// changed is the text of a file with a change.
func changed(text []byte, c change) []byte {
	lines := strings.SplitAfter(string(text), "\n")
	line := lines[c.line-1]
	lines[c.line-1] = line[:c.column-1] + c.to + line[c.column-1+len(c.from):]
	return []byte(strings.Join(lines, ""))
}

// explain is why nobody can notice a change, "" when nothing says so.
func explain(c change) string {
	for _, e := range explained {
		at := strings.Index(c.source, e.code)
		if e.file == c.file && e.kind == c.kind && at >= 0 && c.column > at && c.column <= at+len(e.code) {
			return e.why
		}
	}
	return ""
}
