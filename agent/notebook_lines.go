package agent

import (
	"cmp"
	"context"
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

// selectedLines is the part of a notebook that a selector behind its path names, as much
// as one call shows.
func selectedLines(ctx context.Context, path, selected string, more bool) (Result, error) {
	if more {
		return Result{}, &Error{Argument: "path", Problem: fmt.Sprintf("cells and outputs do not go with lines (:%s); leave one of them out", selected)}
	}
	sel, err := notebook.ParseSelector(selected)
	if err != nil {
		return Result{}, notebookProblem("path", err)
	}
	file, err := notebook.Open(ctx, path)
	if err != nil {
		return Result{}, notebookProblem("path", err)
	}
	var b strings.Builder
	for line := range file.Select(sel) {
		if b.Len()+len(line.Text) > readCut && b.Len() > 0 {
			fmt.Fprintf(&b, "[cut before line %d: the selector %d- reads on]", line.Number, line.Number)
			break
		}
		b.WriteString(line.Text + "\n")
	}
	if b.Len() == 0 {
		return Result{Text: "The notebook has no such lines."}, nil
	}
	return Result{Text: strings.TrimSuffix(b.String(), "\n")}, nil
}
