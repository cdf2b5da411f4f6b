package notebook

import (
	"slices"
	"strings"
	"unicode/utf8"
)

func (v *validator) cellMembers(c *Cell) {
	allowed := []string{"cell_type", "metadata", "source"}
	if v.minor >= 5 {
		allowed = append(allowed, "id")
		v.member(c.n, "id", true, func(n *node) {
			if id, ok := n.str(); !ok {
				v.str(n)
			} else if !validID(id) {
				v.fail("%q is not 1 to 64 characters of a-z A-Z 0-9 - _", id)
			}
		})
	}
	if c.typ == Code {
		allowed = append(allowed, "execution_count", "outputs")
	} else {
		allowed = append(allowed, "attachments")
	}
	v.names(c.n, true, allowed...)
	v.member(c.n, "metadata", true, func(n *node) { v.cellMetadata(c.typ, n) })
	v.member(c.n, "source", true, v.multiline)
	if c.typ != Code {
		v.member(c.n, "attachments", false, v.attachments)
		return
	}
	v.member(c.n, "execution_count", true, func(n *node) { v.integer(n, 0, true) })
	v.member(c.n, "outputs", true, func(n *node) {
		if v.is(n, kindArray) {
			v.elements(n, func(_ int, o *node) { v.output(o) })
		}
	})
}

func (v *validator) cellMetadata(typ CellType, n *node) {
	if !v.is(n, kindObject) {
		return
	}
	v.names(n, false)
	v.member(n, "name", false, v.cellName)
	v.member(n, "tags", false, v.tags)
	if v.minor >= 3 {
		v.member(n, "jupyter", false, func(n *node) { v.is(n, kindObject) })
	}
	switch typ {
	case Raw:
		v.member(n, "format", false, v.str)
	case Code:
		v.member(n, "collapsed", false, v.boolean)
		v.member(n, "scrolled", false, func(n *node) {
			if s, ok := n.str(); ok && s != "auto" {
				v.fail("expected a boolean or \"auto\", found %q", s)
			} else if !ok {
				v.boolean(n)
			}
		})
		if v.minor >= 4 {
			v.member(n, "execution", false, func(n *node) {
				if v.is(n, kindObject) {
					v.values(n, func(_ string, n *node) { v.str(n) })
				}
			})
		}
	}
}

func (v *validator) cellName(n *node) {
	if name, ok := n.str(); !ok {
		v.str(n)
	} else if line, rest, _ := strings.Cut(name, "\n"); line == "" || rest != "" {
		v.fail("a name is one line that is not empty")
	}
}

func (v *validator) tags(n *node) {
	if !v.is(n, kindArray) {
		return
	}
	var seen []string
	v.elements(n, func(_ int, e *node) {
		tag, ok := e.str()
		switch {
		case !ok:
			v.str(e)
		case tag == "":
			v.fail("a tag is empty")
		case strings.Contains(tag, ","):
			v.fail("tag %q holds a comma", tag)
		case slices.Contains(seen, tag):
			v.fail("tag %q is repeated", tag)
		}
		seen = append(seen, tag)
	})
}

// values runs f on each member of an object.
func (v *validator) values(n *node, f func(name string, n *node)) {
	n.each(func(_ int, key []byte, val *node) bool {
		name := decodeString(key)
		v.in(name, func() { f(name, val) })
		return true
	})
}

func (v *validator) attachments(n *node) {
	if v.is(n, kindObject) {
		v.values(n, func(_ string, n *node) { v.bundle(n) })
	}
}

func (v *validator) bundle(n *node) {
	if !v.is(n, kindObject) {
		return
	}
	v.values(n, func(mime string, n *node) {
		if !isJSONType(mime) {
			v.multiline(n)
		}
	})
}

func (v *validator) object(n *node) { v.is(n, kindObject) }

func (v *validator) output(n *node) {
	if !v.is(n, kindObject) {
		return
	}
	v.member(n, "output_type", true, func(t *node) {
		name, ok := t.str()
		if !ok {
			v.str(t)
			return
		}
		known := slices.Contains([]OutputType{Stream, DisplayData, ExecuteResult, ErrorOutput}, OutputType(name))
		if !known && !v.future {
			v.fail("%q is not stream, display_data, execute_result or error", shorten(name))
		}
	})
	switch typ, _ := n.get("output_type").str(); OutputType(typ) {
	case Stream:
		v.names(n, true, "output_type", "name", "text")
		v.member(n, "name", true, v.str)
		v.member(n, "text", true, v.multiline)
	case DisplayData:
		v.names(n, true, "output_type", "data", "metadata")
		v.member(n, "data", true, v.bundle)
		v.member(n, "metadata", true, v.object)
	case ExecuteResult:
		v.names(n, true, "output_type", "data", "metadata", "execution_count")
		v.member(n, "data", true, v.bundle)
		v.member(n, "metadata", true, v.object)
		v.member(n, "execution_count", true, func(n *node) { v.integer(n, 0, true) })
	case ErrorOutput:
		v.names(n, true, "output_type", "ename", "evalue", "traceback")
		v.error(n)
	}
}

// error checks the members of an exception.
func (v *validator) error(n *node) {
	v.member(n, "ename", true, v.str)
	v.member(n, "evalue", true, v.str)
	v.member(n, "traceback", true, func(n *node) {
		if v.is(n, kindArray) {
			v.elements(n, func(_ int, e *node) { v.str(e) })
		}
	})
}

// shorten keeps a text that is quoted in an error to a readable length.
func shorten(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	end := most
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "..."
}
