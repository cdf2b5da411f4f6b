package run

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-run/coppice/notebook"
)

// The tags by which Jupyter's own tools know what to do with a cell.
const (
	// TagRaises marks a cell whose exception is expected: the run goes on.
	TagRaises = "raises-exception"
	// TagSkip marks a cell that is not run.
	TagSkip = "skip-execution"
)

// ErrLanguage is matched by the error about a notebook that is not Python.
var ErrLanguage = errors.New("not a Python notebook")

// foreign are the beginnings of the names of well-known kernels of other
// languages, for notebooks that name a kernel and no language.
var foreign = []string{
	"julia", "bash", "deno", "javascript", "jslab", "tslab", "java", "scala", "kotlin", "xcpp", "rust", "evcxr", ".net-", "gophernotes", "octave", "matlab", "sos", "wolfram", "ruby",
}

// Check returns an error that matches [ErrLanguage] when the notebook's
// metadata names another language than Python, or a kernel that is known to be
// of another language. A notebook that names neither is taken for Python.
func Check(d *notebook.Document) error {
	language, kernel := d.Language(), d.KernelName()
	switch {
	case language == "python" || language == "ipython":
		return nil
	case language != "":
	case kernel == "ir":
		language = "r"
	case slices.ContainsFunc(foreign, func(f string) bool { return strings.HasPrefix(strings.ToLower(kernel), f) }):
		language = kernel
	default:
		return nil
	}
	of := ""
	if kernel != "" {
		of = fmt.Sprintf(" (kernelspec %q)", kernel)
	}
	return fmt.Errorf("%w: its metadata says %s%s, and only Python cells can be run", ErrLanguage, language, of)
}

// Runnable reports whether a run of its notebook runs the cell: it is code,
// holds any, and is not tagged [TagSkip].
func Runnable(c *notebook.Cell) bool {
	return c.Type() == notebook.Code && !c.HasTag(TagSkip) && strings.TrimSpace(c.Source()) != ""
}
