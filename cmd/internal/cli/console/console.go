package console

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/cmd/internal/term"
	"github.com/coppice-run/coppice/internal/home"
)

// Console is what a command is run with. Make it with New. Its fields are set before a
// command runs and do not change.
type Console struct {
	// In is standard input, Out what scripts read, Err what people read.
	In       io.Reader
	Out, Err *Output
	// Version is the program's.
	Version string
	// Env is the whole environment, as os.Environ has it.
	Env []string
	// Hard ends when the process is to end at once.
	Hard context.Context //nolint:containedctx // the life of the process, not of a call

	// gentle has the first SIGTERM or SIGHUP be as an interrupt is.
	gentle atomic.Bool
}

// Gently has the first signal that asks the process to end be like an interrupt, for a
// command that needs time to end in order; Hard ends with the next one.
func (c *Console) Gently() { c.gentle.Store(true) }

// New returns the console of a process with these streams. Nothing ends its Hard until
// WatchSignals is called.
func New(stdin io.Reader, stdout, stderr io.Writer, env []string) *Console {
	c := &Console{In: stdin, Out: &Output{W: stdout}, Err: &Output{W: stderr}, Env: env, Hard: context.Background()}
	for _, o := range []*Output{c.Out, c.Err} {
		if o.Terminal = term.IsTerminal(o.W); o.Terminal {
			o.Width = term.Width(o.W)
		}
	}
	return c
}

// Style is how text for an output looks.
func (c *Console) Style(o *Output) render.Style {
	return render.Style{Terminal: o.Terminal, Colour: o.Terminal && c.Colours(), Width: o.Width, Images: render.ProtocolOf(c.Getenv)}
}

// Colours says whether the environment allows colours: https://no-color.org.
func (c *Console) Colours() bool { return c.Getenv("NO_COLOR") == "" && c.Getenv("TERM") != "dumb" }

// Getenv returns the value of a variable, "" when it is not set.
func (c *Console) Getenv(name string) string { return home.Lookup(c.Env, name) }

// WriteJSON writes v to standard output as one line.
func (c *Console) WriteJSON(v any) error {
	enc := json.NewEncoder(c.Out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}
