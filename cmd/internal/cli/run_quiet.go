package cli

import (
	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/messages"
)

// quiet writes what the code shows and nothing around it, for pipes: what it prints and the
// values of its cells to standard output, the rest to standard error, as Python would.
func quiet(c *console.Console, r coppice.Request, f runFlags) func(messages.Event) error {
	problems := render.NewRun(render.RunOptions{Style: c.Style(c.Err), Expand: f.expand, Cells: r.Cells, Timeout: r.Timeout})
	value := func(b messages.Bundle) {
		if text, ok := b.Text("text/plain"); ok {
			c.Out.Lines(text)
		}
	}
	return func(e messages.Event) error {
		switch e := e.(type) {
		case messages.Stream:
			if e.Name == messages.StdoutStream {
				c.Out.Print(e.Text)
				return nil
			}
			c.Err.Print(e.Text)
		case messages.Display:
			value(e.Data)
		case messages.ExecuteResult:
			value(e.Data)
		case messages.Status, messages.InputRequest: // whoever answers has shown the question
		case messages.Final:
			if o := e.Result.Outcome; o != messages.OutcomeOK && o != messages.OutcomeError || e.Result.Exceeded != nil {
				c.Err.Draw(problems.Event(e))
			}
		default:
			c.Err.Draw(problems.Event(e))
		}
		return nil
	}
}
