package notebook

import (
	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/notebook"
)

// outputText is one output of a cell as text, at most so many lines of it.
func outputText(s render.Style, o notebook.Output, most int) []string {
	var lines []string
	switch o.Type {
	case notebook.Stream:
		lines = render.StreamText(s, o.Text)
	case notebook.DisplayData, notebook.ExecuteResult:
		lines = render.BundleText(s, messages.Bundle(o.Data))
	case notebook.ErrorOutput:
		lines = render.Traceback(s, messages.ErrorDetails{Name: o.EName, Message: o.EValue, Traceback: o.Traceback})
	default:
		lines = []string{"[" + render.OneLine(string(o.Type)) + "]"}
	}
	return render.Cut(lines, most)
}
