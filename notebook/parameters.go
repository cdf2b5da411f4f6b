package notebook

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/coppice-run/coppice/internal/pylit"
)

// The tags by which papermill knows the cell with the defaults of a notebook's
// parameters, and the one that overrides them.
const (
	TagParameters = "parameters"
	TagInjected   = "injected-parameters"
)

// Parameter is a value that a run of the notebook is given.
type Parameter struct {
	// Name is a Python identifier.
	Name string
	// Value is anything encoding/json can marshal; a json.RawMessage is taken
	// as it is, so that numbers keep their digits.
	Value any
}

// SetParameters puts the parameters into a code cell of their own, as
// papermill does: the cell tagged injected-parameters is replaced; without one
// a new cell goes below the cell tagged parameters, or to the top. It returns
// the cell. Without parameters, the injected cell is removed and nil returned.
//
// The values become Python literals. A notebook whose metadata names another
// language is an error of kind ErrArgument.
func (d *Document) SetParameters(params ...Parameter) (*Cell, error) {
	if lang := d.Language(); lang != "" && lang != "python" && lang != "ipython" {
		return nil, fault(ErrArgument, "parameters are for Python notebooks, this one is %s", lang)
	}
	source, err := parametersSource(params)
	if err != nil {
		return nil, err
	}
	byTag := func(tag string) int {
		return slices.IndexFunc(d.cells, func(c *Cell) bool { return c.HasTag(tag) })
	}
	injected := byTag(TagInjected)
	if injected >= 0 && d.cells[injected].typ != Code {
		return nil, fault(ErrArgument, "cell %d is tagged %s and is not code", injected, TagInjected)
	}
	if len(params) == 0 {
		if injected >= 0 {
			return nil, d.Delete(At(injected))
		}
		return nil, nil
	}
	if injected >= 0 {
		c := d.cells[injected]
		if d.setSource(c, source) {
			d.clearOutputs(c)
		}
		return c, nil
	}
	cells, err := d.Insert(byTag(TagParameters)+1, NewCell{Source: source, Tags: []string{TagInjected}})
	if err != nil {
		return nil, err
	}
	return cells[0], nil
}

func parametersSource(params []Parameter) (string, error) {
	var b strings.Builder
	b.WriteString("# Parameters\n")
	for i, p := range params {
		if !isPythonName(p.Name) {
			return "", fault(ErrArgument, "parameter %q is no Python name", p.Name)
		}
		if slices.ContainsFunc(params[:i], func(q Parameter) bool { return q.Name == p.Name }) {
			return "", fault(ErrArgument, "parameter %q is given twice", p.Name)
		}
		n, err := newValue(p.Value)
		if err != nil {
			return "", &Error{Kind: ErrArgument, Reason: "parameter " + p.Name, Err: err}
		}
		fmt.Fprintf(&b, "%s = %s\n", p.Name, pythonLiteral(n))
	}
	return b.String(), nil
}

// pythonLiteral writes a JSON value as Python.
func pythonLiteral(n *node) string {
	switch n.kind() {
	case kindNull:
		return "None"
	case kindTrue:
		return "True"
	case kindFalse:
		return "False"
	case kindString:
		text, _ := n.str()
		return pylit.String(text)
	case kindNumber:
		switch s := string(n.raw); s {
		case "NaN":
			return "float('nan')"
		case "Infinity":
			return "float('inf')"
		case "-Infinity":
			return "float('-inf')"
		default:
			return s
		}
	}
	var parts []string
	n.each(func(_ int, key []byte, v *node) bool {
		part := pythonLiteral(v)
		if key != nil {
			part = pylit.String(decodeString(key)) + ": " + part
		}
		parts = append(parts, part)
		return true
	})
	if n.kind() == kindObject {
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// pythonKeywords cannot be assigned to.
var pythonKeywords = []string{
	"False", "None", "True", "and", "as", "assert", "async", "await", "break", "class",
	"continue", "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is",
	"lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield", "__debug__",
}

func isPythonName(s string) bool {
	for i, r := range s {
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r)) {
			return false
		}
	}
	return s != "" && !slices.Contains(pythonKeywords, s)
}
