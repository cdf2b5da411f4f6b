package fake

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/coppice-run/coppice/actors/gateway"
	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

const gatewayName = "fake"

// forever is how long a session may be idle: it ends when another needs its place.
const forever = 365 * 24 * time.Hour

// Options makes a Host. The zero value of each field is its default.
type Options struct {
	// MaxSessions is how many interpreters may live at once. 0: 10,000.
	MaxSessions int
	// MaxWaiting is how many new sessions may wait for a place. 0: 1,000,000.
	MaxWaiting int
	// OnEvent hears what happens in the tree. nil: it is not called.
	OnEvent func(messages.Lifecycle)
}

// Host owns the tree.
type Host struct {
	system *supervisor.System
	ledger *ledger

	mu       sync.Mutex
	sessions map[string]*Session // guarded by mu
}

// Start makes a host.
func Start(ctx context.Context, o Options) (*Host, error) {
	if o.MaxSessions == 0 {
		o.MaxSessions = 10_000
	}
	if o.MaxWaiting == 0 {
		o.MaxWaiting = 1_000_000
	}
	h := &Host{ledger: &ledger{last: map[string]uint64{}, alive: map[string]int{}}, sessions: map[string]*Session{}}
	gate := gateway.New(gateway.Options{
		Name:     gatewayName,
		Strategy: gateway.Policy{IdleTTL: forever, MaxKernels: o.MaxSessions, MaxWaiting: o.MaxWaiting}.Strategy(),
		NewKernel: func(k gateway.KernelSpec) supervisor.Behaviour {
			return kernel.New(kernel.Options{Backend: backend{h.ledger}, Key: k.Key, Past: k.Past, Once: k.Once})
		},
	})
	system, err := supervisor.Start(ctx, supervisor.SystemOptions{
		OnEvent:  o.OnEvent,
		Children: []supervisor.Spec{{Key: gatewayName, Kind: "gateway", New: func() supervisor.Behaviour { return gate }}},
	})
	if err != nil {
		return nil, fmt.Errorf("start the supervision tree: %w", err)
	}
	h.system = system
	return h, nil
}

// Session returns the session with this name.
func (h *Host) Session(name string) *Session {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sessions[name]
	if s == nil {
		s = &Session{host: h, key: messages.SessionKey{Session: name, Cwd: "/"}}
		h.sessions[name] = s
	}
	return s
}

// Snapshot returns the tree as it is now.
func (h *Host) Snapshot(ctx context.Context) (messages.Node, error) {
	return h.system.Snapshot(ctx)
}

// Made and Died are how many interpreters there were, and how many of them ended
// under a cell.
func (h *Host) Made() int64 { return h.ledger.made.Load() }

// Died is how many interpreters ended under a cell.
func (h *Host) Died() int64 { return h.ledger.died.Load() }

// Check returns what should not have happened, nil when all was right.
func (h *Host) Check() error {
	h.ledger.mu.Lock()
	defer h.ledger.mu.Unlock()
	if h.ledger.count == 0 {
		return nil
	}
	return fmt.Errorf("%d wrongs: %s", h.ledger.count, strings.Join(h.ledger.wrongs, "; "))
}

// Shutdown ends the tree.
func (h *Host) Shutdown(ctx context.Context) messages.ShutdownReport { return h.system.Shutdown(ctx) }

// Session is one key.
type Session struct {
	host *Host
	key  messages.SessionKey

	mu sync.Mutex
	n  uint64 // guarded by mu: the calls that were submitted
}

// Execute makes one call and waits for its result.
func (s *Session) Execute(ctx context.Context, code string) (messages.Result, error) {
	exec := messages.Execute{ID: messages.NewID(), Key: s.key, Out: &outlet{}}
	begin := time.Now()
	// The number and the place in the gateway's mailbox are one step.
	s.mu.Lock()
	s.n++
	exec.Cells = []messages.Cell{{Code: fmt.Sprintf("%d %s", s.n, code)}}
	_, reply, err := supervisor.Begin[messages.Result](s.host.system.Ref(gatewayName), exec)
	s.mu.Unlock()
	if err != nil {
		return messages.Result{}, fmt.Errorf("make the call: %w", err)
	}
	r, err := reply.Wait(ctx)
	if err != nil {
		return r, fmt.Errorf("wait for the result: %w", err)
	}
	r.Duration = time.Since(begin)
	if len(r.Cells) > 0 {
		r.Text = r.Cells[0].Output
	}
	if r.Exec != exec.ID {
		return r, fmt.Errorf("the result of call %s came to call %s", r.Exec, exec.ID)
	}
	return r, nil
}

// Reset ends the session's kernel; the next call gets a new one.
func (s *Session) Reset(ctx context.Context) error {
	_, err := supervisor.Ask[bool](ctx, s.host.system.Ref(gatewayName), messages.Reset{Key: s.key})
	if err != nil {
		return fmt.Errorf("reset session %s: %w", s.key.Session, err)
	}
	return nil
}

// Close ends the session's kernel and forgets the session.
func (s *Session) Close(ctx context.Context) error {
	_, err := supervisor.Ask[bool](ctx, s.host.system.Ref(gatewayName), messages.Close{Key: s.key})
	if err != nil {
		return fmt.Errorf("close session %s: %w", s.key.Session, err)
	}
	s.host.mu.Lock()
	delete(s.host.sessions, s.key.Session)
	s.host.mu.Unlock()
	return nil
}

// outlet keeps what one call prints.
type outlet struct{ text strings.Builder }

// Emit keeps text.
func (o *outlet) Emit(_ context.Context, e messages.Event) error {
	if s, ok := e.(messages.Stream); ok {
		o.text.WriteString(s.Text)
	}
	return nil
}

// Flush returns it.
func (o *outlet) Flush(context.Context) messages.Output {
	return messages.Output{Cells: []messages.CellOutput{{Text: o.text.String()}}}
}
