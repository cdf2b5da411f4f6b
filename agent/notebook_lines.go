package agent

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/coppice-run/coppice/notebook"
)

// cutSelector takes a selector of lines off a path: s.ipynb:1-4 has the selector 1-4. A
// path without one is returned as it is.
func cutSelector(path *string) (named *string, selected string) {
	const ext = ".ipynb:"
	if path == nil || notebook.IsPath(*path) {
		return path, ""
	}
	at := strings.LastIndex(strings.ToLower(*path), ext)
	if at < 0 || len(strings.ToLower(*path)) != len(*path) {
		return path, ""
	}
	at += len(ext)
	file := (*path)[:at-1]
	return &file, cmp.Or((*path)[at:], "1-")
}

// linesOf are the lines of a notebook that a selector names, most bytes of them, and
// where it goes on.
func linesOf(file *notebook.File, selected notebook.Selector, most int) string {
	var b strings.Builder
	for line := range file.Select(selected) {
		if b.Len()+len(line.Text) > most && b.Len() > 0 {
			fmt.Fprintf(&b, "[cut before line %d: the selector %d- reads on]", line.Number, line.Number)
			break
		}
		b.WriteString(line.Text + "\n")
	}
	if b.Len() == 0 {
		return "The notebook has no such lines."
	}
	return strings.TrimSuffix(b.String(), "\n")
}
