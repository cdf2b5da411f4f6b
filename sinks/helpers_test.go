package sinks_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks"
	"github.com/coppice-run/coppice/supervisor"
)

// tree is a running tree with a hub in it.
type tree struct {
	*sinks.Hub
	system *supervisor.System
}

// start runs a tree with nothing but a hub in it, for as long as the test.
func start(t testing.TB, o sinks.HubOptions, more ...supervisor.Spec) *tree {
	t.Helper()
	hub, err := sinks.NewHub(o)
	require.NoError(t, err)
	system, err := supervisor.Start(t.Context(), supervisor.SystemOptions{Children: append([]supervisor.Spec{hub.Spec()}, more...)})
	require.NoError(t, err)
	t.Cleanup(func() {
		report := system.Shutdown(context.Background())
		require.True(t, report.Clean(), "%v", report.Leftovers)
		require.Empty(t, system.Bugs())
	})
	return &tree{hub, system}
}

func exec(session string) messages.Execute {
	return messages.Execute{ID: "id-of-" + session, Key: messages.SessionKey{Session: session, Cwd: "/w"}, Cells: make([]messages.Cell, 2)}
}

// open opens a call that is closed at the end of the test.
func (h *tree) open(t testing.TB, session string, extra ...sinks.Sink) *sinks.Call {
	t.Helper()
	c, err := h.Open(t.Context(), exec(session), extra...)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func out(text string) messages.Stream {
	return messages.Stream{Name: messages.StdoutStream, Text: text}
}

// probe is a sink that remembers what it was told and misbehaves on command.
// Everything but the functions is guarded by mu.
type probe struct {
	// consume is called before an event is remembered; nil is always fine.
	consume func(ctx context.Context, n int, e messages.Event) error
	flush   func() error

	mu              sync.Mutex
	events          []messages.Event
	n               int // calls of Consume
	flushes, closes int
	inside          bool
	wrong           []string
}

// enter finds calls at the same time.
func (p *probe) enter(what string) (leave func()) {
	p.mu.Lock()
	if p.inside {
		p.wrong = append(p.wrong, what+" while another call was inside")
	}
	if p.closes > 0 {
		p.wrong = append(p.wrong, what+" after Close")
	}
	p.inside = true
	p.mu.Unlock()
	return func() {
		p.mu.Lock()
		p.inside = false
		p.mu.Unlock()
	}
}

func (p *probe) Consume(ctx context.Context, e messages.Event) error {
	defer p.enter("Consume")()
	p.mu.Lock()
	n := p.n
	p.n++
	p.mu.Unlock()
	if p.consume != nil {
		if err := p.consume(ctx, n, e); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, e)
	return nil
}

func (p *probe) Flush(context.Context) error {
	defer p.enter("Flush")()
	p.mu.Lock()
	p.flushes++
	p.mu.Unlock()
	if p.flush != nil {
		return p.flush()
	}
	return nil
}

func (p *probe) Close() error {
	defer p.enter("Close")()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closes++
	return nil
}

// texts returns the numbers and texts of the stream events.
func (p *probe) texts() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	for _, e := range p.events {
		if s, ok := e.(messages.Stream); ok {
			all = append(all, fmt.Sprintf("%d:%s", s.Seq, s.Text))
		}
	}
	return all
}

func (p *probe) counts() (flushes, closes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.flushes, p.closes
}

// ok fails the test if the sink's contract was broken.
func (p *probe) ok(t testing.TB) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	require.Empty(t, p.wrong)
}

// eventually waits for something that another goroutine does soon.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, 3*time.Minute, time.Millisecond, what)
}
