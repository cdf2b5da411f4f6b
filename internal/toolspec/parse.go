package toolspec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// MaxFileBytes bounds a tool.json.
const MaxFileBytes = 4 << 20

// Parse reads a tool.json. The error is an [*Error] with every problem.
func Parse(data []byte) (*Tool, error) {
	if len(data) > MaxFileBytes {
		return nil, &Error{Problems: []Problem{{Text: fmt.Sprintf("it has %d bytes; at most %d are read", len(data), MaxFileBytes)}}}
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	var v any
	if err := decodeOne(data, &v); err != nil {
		return nil, &Error{Problems: []Problem{{Text: where(data, err)}}}
	}
	var p problems
	document(&p, "", v)
	if len(p.list) > 0 {
		return nil, &Error{Problems: p.list}
	}
	t := defaults()
	if err := json.Unmarshal(data, &t); err != nil {
		return nil, &Error{Problems: []Problem{{Text: err.Error()}}}
	}
	t.Raw = bytes.Clone(data)
	t.checkNames(&p)
	if len(p.list) > 0 {
		return nil, &Error{Problems: p.list}
	}
	return &t, nil
}

// checkNames refuses what could not be addressed: a key twice, an id that is no
// name, a program outside of the folder.
func (t *Tool) checkNames(p *problems) {
	if !IsID(t.ID) {
		p.add("id", "%q is not a name of letters, digits, dots, dashes and underscores", t.ID)
	}
	if !filepath.IsLocal(t.Entrypoint) {
		p.add("entrypoint", "%q does not lie in the tool's folder", t.Entrypoint)
	}
	seen := map[string]bool{}
	for i := range t.Inputs {
		if key := t.Inputs[i].Key; seen[key] {
			p.add(fmt.Sprintf("inputs[%d].key", i), "%q is there twice", key)
		} else {
			seen[key] = true
		}
	}
	seen = map[string]bool{}
	for i := range t.Outputs {
		if key := t.Outputs[i].Key; seen[key] {
			p.add(fmt.Sprintf("outputs[%d].key", i), "%q is there twice", key)
		} else {
			seen[key] = true
		}
	}
}

// IsID reports whether s can be the id of a tool: it becomes part of paths and
// URLs.
func IsID(s string) bool {
	if s == "" || len(s) > 128 || s[0] == '.' || s[0] == '-' {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '-' && r != '_'
	}) < 0
}

// decodeOne decodes a document that is one JSON value.
func decodeOne(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("something follows the document at byte %d", d.InputOffset())
	}
	return nil
}

// where adds line and column to a syntax error.
func where(data []byte, err error) string {
	if errors.Is(err, io.EOF) {
		return "it is empty"
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return "it is not JSON: it ends too early"
	}
	syntax, ok := errors.AsType[*json.SyntaxError](err)
	if !ok {
		return "it is not JSON: " + err.Error()
	}
	before := data[:min(int(syntax.Offset), len(data))]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := len(before) - bytes.LastIndexByte(before, '\n') - 1
	return fmt.Sprintf("it is not JSON: line %d, column %d: %s", line, column, syntax.Error())
}
