package notebook

import (
	"regexp"
	"slices"
	"strings"
)

// rootOfV3 checks a notebook of nbformat 3 as it is in its file.
func (v *validator) rootOfV3(n *node) {
	v.names(n, true, "metadata", "nbformat", "nbformat_minor", "orig_nbformat", "orig_nbformat_minor", "worksheets")
	v.member(n, "nbformat", true, func(n *node) {
		v.integer(n, 3, false)
		if i, ok := n.integer(); ok && i > 3 {
			v.fail("%d is above 3", i)
		}
	})
	v.member(n, "nbformat_minor", true, func(n *node) { v.integer(n, 0, false) })
	v.member(n, "orig_nbformat", false, func(n *node) { v.integer(n, 1, false) })
	v.member(n, "orig_nbformat_minor", false, func(n *node) { v.integer(n, 0, false) })
	v.member(n, "metadata", true, func(n *node) {
		if !v.is(n, kindObject) {
			return
		}
		v.names(n, false)
		v.member(n, "kernel_info", false, func(n *node) {
			if v.is(n, kindObject) {
				v.member(n, "name", true, v.str)
				v.member(n, "language", true, v.str)
				v.member(n, "codemirror_mode", false, v.str)
			}
		})
		v.member(n, "signature", false, v.str)
	})
	cell := 0
	v.member(n, "worksheets", true, func(n *node) {
		v.elements(n, func(_ int, sheet *node) {
			v.names(sheet, true, "cells", "metadata")
			v.member(sheet, "metadata", false, v.object)
			v.member(sheet, "cells", true, func(n *node) {
				v.elements(n, func(_ int, c *node) {
					v.cell = cell
					v.cellOfV3(c)
					cell++
				})
				v.cell = -1
			})
		})
	})
}

func (v *validator) cellOfV3(n *node) {
	allowed := []string{"cell_type", "metadata"}
	text := "source"
	switch typ, _ := n.get("cell_type").str(); typ {
	case "code":
		text = "input"
		allowed = append(allowed, "language", "collapsed", "outputs", "prompt_number")
		v.member(n, "language", true, v.str)
		v.member(n, "collapsed", false, v.boolean)
		v.member(n, "prompt_number", false, func(n *node) { v.integer(n, 0, true) })
		v.member(n, "outputs", true, func(n *node) {
			if v.is(n, kindArray) {
				v.elements(n, func(_ int, o *node) { v.outputOfV3(o) })
			}
		})
	case "heading":
		allowed = append(allowed, "level")
		v.member(n, "level", true, func(n *node) { v.integer(n, 1, false) })
	}
	v.names(n, true, append(allowed, text)...)
	v.member(n, text, true, v.multiline)
	v.member(n, "metadata", false, func(n *node) {
		typ, _ := n.get("cell_type").str()
		if !v.is(n, kindObject) || typ == "code" || typ == "heading" {
			return
		}
		v.names(n, false)
		v.member(n, "name", false, v.cellName)
		v.member(n, "tags", false, v.tags)
		if typ == "raw" {
			v.member(n, "format", false, v.str)
		}
	})
}

// mimeInV3 is a name under which an output of version 3 may hold data besides the short
// ones.
var mimeInV3 = regexp.MustCompile(`[a-zA-Z0-9]+/[a-zA-Z0-9\-+.]+$`)

func (v *validator) outputOfV3(n *node) {
	if !v.is(n, kindObject) {
		return
	}
	v.member(n, "output_type", true, v.str)
	switch typ, known := n.get("output_type").str(); typ {
	case "pyout", "display_data":
		if typ == "pyout" {
			v.member(n, "prompt_number", true, func(n *node) { v.integer(n, 0, false) })
		}
		v.member(n, "metadata", false, v.object)
		allowed := []string{"output_type", "metadata"}
		if typ == "pyout" {
			allowed = append(allowed, "prompt_number")
		}
		n.each(func(_ int, key []byte, data *node) bool {
			name := decodeString(key)
			if isDataInV3(name, typ) {
				allowed = append(allowed, name)
				v.in(name, func() { v.multiline(data) })
			}
			return true
		})
		v.names(n, true, allowed...)
	case "stream":
		v.names(n, true, "output_type", "stream", "text")
		v.member(n, "stream", true, v.str)
		v.member(n, "text", true, v.multiline)
	case "pyerr":
		v.names(n, true, "output_type", "ename", "evalue", "traceback")
		v.error(n)
	default:
		if known {
			v.in("output_type", func() { v.fail("%q is not pyout, display_data, stream or pyerr", shorten(typ)) })
		}
	}
}

// isDataInV3 reports whether a member of an output holds data.
func isDataInV3(name, typ string) bool {
	if slices.Contains([]string{"text", "latex", "png", "jpeg", "svg", "html", "javascript", "json", "pdf"}, name) {
		return true
	}
	at := mimeInV3.FindStringIndex(strings.TrimSuffix(name, "\n"))
	return at != nil && (typ != "pyout" || at[0] == 0)
}
