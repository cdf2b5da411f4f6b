package repl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
)

// Options make a screen.
type Options struct {
	// Session runs the cells; Backend is what the status line calls its kind.
	Session *coppice.Session
	Backend string
	// Snapshot returns the tree that the pane shows.
	Snapshot func(context.Context) (messages.Node, error)
	// History is the file of what was run before. "": it is not kept.
	History string
	// Colour allows colours.
	Colour bool
	// In and Out are the terminal, Env what is known of it.
	In  io.Reader
	Out io.Writer
	Env []string
	// Now is the clock. nil: time.Now.
	Now func() time.Time
}

func (o Options) now() time.Time {
	if o.Now != nil {
		return o.Now()
	}
	return time.Now()
}

// Run shows the screen until the user leaves or ctx ends. A cell that runs then
// is interrupted, and Run waits for its end.
func Run(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := &model{o: o, ctx: ctx, history: loadHistory(o.History)}
	p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithEnvironment(o.Env), tea.WithoutSignalHandler())
	m.send = p.Send // once the loop has ended it drops what it is sent
	_, err := p.Run()
	cancel()
	m.calls.wait()
	if err != nil && !errors.Is(err, tea.ErrProgramKilled) {
		return fmt.Errorf("show the screen: %w", err)
	}
	return nil
}

// group owns the goroutines of a screen.
type group struct{ running sync.WaitGroup }

func (g *group) run(f func()) { g.running.Go(f) }
func (g *group) wait()        { g.running.Wait() }

// introspectWait is how long a person waits for a completion or an inspection, which
// keeps the session from the next cell.
const introspectWait = 15 * time.Second

// introspect asks the session something in the background.
func (m *model) introspect(f func(context.Context)) {
	m.calls.run(func() {
		ctx, cancel := context.WithTimeout(m.ctx, introspectWait)
		defer cancel()
		f(ctx)
	})
}
