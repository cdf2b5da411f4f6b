package top

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/messages"
)

// Server is what the screen asks; *client.Client is one.
type Server interface {
	Health(ctx context.Context) (client.Health, error)
	Tree(ctx context.Context) (messages.Node, error)
	Sessions(ctx context.Context) ([]client.Session, error)
	Executions(ctx context.Context, key messages.SessionKey) ([]client.Execution, error)
	Overview(ctx context.Context, after uint64) (client.Overview, error)
	Story(ctx context.Context, key messages.SessionKey) (client.Story, error)
	Changes(ctx context.Context, after uint64) iter.Seq2[client.Change, error]
	Events(ctx context.Context, id string, after uint64) iter.Seq2[messages.Event, error]
	Interrupt(ctx context.Context, key messages.SessionKey) error
	Reset(ctx context.Context, key messages.SessionKey) error
	Pin(ctx context.Context, key messages.SessionKey, pinned bool) error
	Fork(ctx context.Context, key messages.SessionKey, n int, owner string) ([]messages.SessionKey, error)
	CloseSession(ctx context.Context, key messages.SessionKey) error
}

// Options make a screen.
type Options struct {
	// Server is what is shown. Required.
	Server Server
	// Every is how often memory and processor are read. 0: 2 s.
	Every time.Duration
	// Colour allows colours.
	Colour bool
	// In and Out are the terminal, Env what is known of it.
	In  io.Reader
	Out io.Writer
	Env []string
}

// Run shows the screen until the user leaves or ctx ends.
func Run(ctx context.Context, o Options) error {
	if o.Every == 0 {
		o.Every = 2 * time.Second
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := newModel(ctx, o)
	p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithEnvironment(o.Env), tea.WithoutSignalHandler())
	m.send = p.Send // once the loop has ended it drops what it is sent
	m.calls.Go(m.follow)
	m.calls.Go(m.poll)
	_, err := p.Run()
	cancel()
	m.calls.Wait()
	if err != nil && !errors.Is(err, tea.ErrProgramKilled) {
		return fmt.Errorf("show the screen: %w", err)
	}
	return nil
}

// The messages of the screen.
type (
	// looked is what the server shows now.
	looked struct {
		health     client.Health
		tree       messages.Node
		sessions   []client.Session
		executions []client.Execution
		overview   client.Overview
		at         time.Time
		err        error
	}
	// happened is a change.
	happened struct{ change client.Change }
	// lost says that the connection is.
	lost struct{ err error }
	// printed is an event of the execution with this id.
	printed struct {
		id    string
		event messages.Event
	}
	// told is what became of a session.
	told struct{ story client.Story }
	// did is what became of an action.
	did struct{ text string }
)

// follow sends the server's changes; each makes the screen look again.
func (m *model) follow() {
	again := time.NewTimer(0)
	defer again.Stop()
	for after := uint64(0); m.ctx.Err() == nil; {
		for c, err := range m.o.Server.Changes(m.ctx, after) {
			if err != nil {
				m.send(lost{err})
				break
			}
			after = c.Seq
			m.send(happened{c})
			m.wake()
		}
		again.Reset(time.Second)
		select {
		case <-again.C:
		case <-m.ctx.Done():
		}
		after = 0 // a server that was restarted counts from 1
	}
}

// wake makes poll look at once.
func (m *model) wake() {
	select {
	case m.look <- struct{}{}:
	default:
	}
}

// poll looks at the server: now and then, and when something happened, but never
// more often than a person sees.
func (m *model) poll() {
	const atMost = 100 * time.Millisecond
	tick := time.NewTicker(m.o.Every)
	defer tick.Stop()
	rest := time.NewTimer(0)
	defer rest.Stop()
	for {
		m.send(m.see())
		rest.Reset(atMost)
		select {
		case <-rest.C:
		case <-m.ctx.Done():
			return
		}
		select {
		case <-m.look:
		case <-tick.C:
		case <-m.ctx.Done():
			return
		}
	}
}

// see asks the server for all that is shown.
func (m *model) see() looked {
	ctx, cancel := context.WithTimeout(m.ctx, 10*time.Second)
	defer cancel()
	v := looked{at: time.Now()}
	if v.health, v.err = m.o.Server.Health(ctx); v.err != nil {
		return v
	}
	if v.tree, v.err = m.o.Server.Tree(ctx); v.err != nil {
		return v
	}
	if v.sessions, v.err = m.o.Server.Sessions(ctx); v.err != nil {
		return v
	}
	if v.executions, v.err = m.o.Server.Executions(ctx, messages.SessionKey{}); v.err != nil {
		return v
	}
	var old *client.Error
	if v.overview, v.err = m.o.Server.Overview(ctx, m.newest.Load()); errors.As(v.err, &old) && old.Status == http.StatusNotFound {
		v.err = nil // a server of an older version has none
	}
	return v
}

// watch sends the events of an execution until stop is called.
func (m *model) watch(id string) (stop func()) {
	ctx, cancel := context.WithCancel(m.ctx)
	m.calls.Go(func() {
		for e, err := range m.o.Server.Events(ctx, id, 0) {
			if err != nil {
				return // the server has forgotten it, or is gone: the other parts say so
			}
			m.send(printed{id, e})
		}
	})
	return cancel
}

// read asks what became of a session.
func (m *model) read(key messages.SessionKey) {
	m.calls.Go(func() {
		ctx, cancel := context.WithTimeout(m.ctx, 10*time.Second)
		defer cancel()
		if story, err := m.o.Server.Story(ctx, key); err == nil { // else the connection is lost, which poll says
			m.send(told{story})
		}
	})
}

// do runs an action and tells what became of it.
func (m *model) do(name string, f func(context.Context) (string, error)) {
	m.calls.Go(func() {
		ctx, cancel := context.WithTimeout(m.ctx, 30*time.Second)
		defer cancel()
		text, err := f(ctx)
		if err != nil {
			text = name + " failed: " + err.Error()
		}
		m.send(did{text})
		m.wake()
	})
}
