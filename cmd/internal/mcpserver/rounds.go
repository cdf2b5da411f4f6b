package mcpserver

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
)

// keepAnswer is how long the result of a call is kept for a client that owes an
// answer.
const keepAnswer = 5 * time.Minute

// dialogs are the calls whose clients were sent away with a question. Any
// goroutine may use them.
//
//	             ┌─ a question: the client goes with a new state ─▶ parked ─┐
//	running ◀────┤                                                          │
//	   ▲         └─ the end: the result ─▶ over                             │
//	   └─────────────── the client comes back with the state ◀──────────────┘
type dialogs struct {
	ctx  context.Context //nolint:containedctx // the life of the server: calls outlive the requests that make them
	stop context.CancelFunc
	runs sync.WaitGroup // one for each running call

	mu     sync.Mutex
	closed bool               // no call begins any more; guarded by mu
	parked map[string]*dialog // by the state that brings it back, which counts once; guarded by mu
}

func newDialogs() *dialogs {
	d := &dialogs{parked: map[string]*dialog{}}
	d.ctx, d.stop = context.WithCancel(context.Background())
	return d
}

// close ends the calls that wait for their clients, and waits for them.
func (ds *dialogs) close() {
	ds.mu.Lock()
	ds.closed = true
	clear(ds.parked)
	ds.mu.Unlock()
	ds.stop()
	ds.runs.Wait()
}

// run makes a call in a goroutine of its own, which ends with the call or the
// server. It reports whether there is still a server.
func (ds *dialogs) run(d *dialog, call func()) bool {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if ds.closed {
		return false
	}
	ds.runs.Go(func() {
		call()
		ds.mu.Lock()
		defer ds.mu.Unlock()
		close(d.done)
		ds.forget(d)
	})
	return true
}

// forget drops a dialog that is over, if its client stays away. ds.mu is held.
func (ds *dialogs) forget(d *dialog) {
	time.AfterFunc(keepAnswer, func() {
		ds.mu.Lock()
		defer ds.mu.Unlock()
		maps.DeleteFunc(ds.parked, func(_ string, p *dialog) bool { return p == d })
	})
}

// park keeps a dialog until its client comes back, or for a while after the call
// has ended.
func (ds *dialogs) park(d *dialog) (state string) {
	state = stateOf(d.begun)
	ds.mu.Lock()
	defer ds.mu.Unlock()
	ds.parked[state] = d
	select {
	case <-d.done: // just now
		ds.forget(d)
	default:
	}
	return state
}

// take is the dialog that a client comes back to; nil: there is none.
func (ds *dialogs) take(state, tool string) *dialog {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	d := ds.parked[state]
	if d == nil || d.tool != tool {
		return nil
	}
	delete(ds.parked, state)
	return d
}

// dialog is a call that asks its client by ending the request: the client makes
// it again, with the answer. The call runs on meanwhile, in a goroutine of its
// own.
type dialog struct {
	tool  string
	begun string // the handle of the session that the call has begun; "": it had one
	stop  context.CancelFunc
	done  chan struct{} // closed when result and err are set

	result *mcp.CallToolResult
	err    error

	asked chan struct{} // has a value when open has grown

	mu     sync.Mutex
	open   map[string]*question // guarded by mu
	output *watch               // that of the request that is there; nil: none, or it wants no progress; guarded by mu
	missed tail                 // what was shown while none was there; guarded by mu
}

// question waits for its answer.
type question struct {
	params *mcp.ElicitParams
	answer chan *mcp.ElicitResult // has room for one
}

// begin makes a call of a tool and serves its first request.
func (s *server) begin(ctx context.Context, req *mcp.CallToolRequest, m made) (*mcp.CallToolResult, error) {
	d := &dialog{tool: m.tool.Name, done: make(chan struct{}), asked: make(chan struct{}, 1), open: map[string]*question{}}
	if m.at.begun {
		d.begun = m.at.shown
	}
	run, stop := context.WithCancel(s.dialogs.ctx)
	d.stop = stop
	m.users = &user{ask: d.ask, log: s.o.Logger}
	m.call.OnEvent, m.call.Input = d.event, m.users.input
	if !s.dialogs.run(d, func() {
		defer stop()
		d.result, d.err = m.run(run)
	}) {
		stop()
		return nil, fmt.Errorf("call the tool %s: %w", m.tool.Name, coppice.ErrClosed)
	}
	return s.round(ctx, req, d)
}

// resume serves the request of a client that comes back.
func (s *server) resume(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	d := s.dialogs.take(req.Params.RequestState, req.Params.Name)
	if d == nil {
		return refused(req.Params.Name + ": requestState: no call waits for this answer: it had one, or waited for too long, or the server was started anew. Make the call again without it."), nil
	}
	d.mu.Lock()
	for id, r := range req.Params.InputResponses {
		if q := d.open[id]; q != nil {
			answer, _ := r.(*mcp.ElicitResult)
			delete(d.open, id)
			q.answer <- answer
		}
	}
	d.mu.Unlock()
	return s.round(ctx, req, d)
}

// round serves one request of a dialog, until there is a question or a result.
func (s *server) round(ctx context.Context, req *mcp.CallToolRequest, d *dialog) (*mcp.CallToolResult, error) {
	w := s.watch(ctx, req)
	d.attach(w)
	defer d.detach(w)
	for {
		if open := d.questions(); len(open) > 0 {
			return &mcp.CallToolResult{InputRequests: open, RequestState: s.dialogs.park(d)}, nil
		}
		select {
		case <-d.done:
			return d.result, d.err
		case <-d.asked:
		case <-ctx.Done(): // the client has cancelled, or is gone
			d.stop()
			<-d.done
			return d.result, d.err
		}
	}
}

// questions are those that wait.
func (d *dialog) questions() mcp.InputRequestMap {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := mcp.InputRequestMap{}
	for id, q := range d.open {
		all[id] = q.params
	}
	return all
}

// ask puts a question to the client, and waits for its answer.
func (d *dialog) ask(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	id, q := rand.Text(), &question{p, make(chan *mcp.ElicitResult, 1)}
	d.mu.Lock()
	d.open[id] = q
	d.mu.Unlock()
	select {
	case d.asked <- struct{}{}:
	default:
	}
	select {
	case r := <-q.answer:
		return r, nil
	case <-ctx.Done():
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.open, id)
		return nil, ctx.Err()
	}
}

// event takes an event of the call to the request that is there, or keeps it for
// the next.
func (d *dialog) event(e messages.Event) {
	s, ok := e.(messages.Stream)
	if !ok {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.output != nil {
		d.output.event(e)
		return
	}
	d.missed.add(s.Text)
}

func (d *dialog) attach(w *watch) {
	if w == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.output = w
	if text := d.missed.take(); text != "" {
		w.add(text)
	}
}

// detach keeps what was not sent for the next request. A client that does not take
// its notifications holds it up for no longer than its request lasts.
func (d *dialog) detach(w *watch) {
	if w == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.output = nil
	w.end()
	d.missed.add(w.text.take())
}
