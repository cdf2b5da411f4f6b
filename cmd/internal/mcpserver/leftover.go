package mcpserver

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/messages"
)

// endTimeout bounds how long the end of an unused session is waited for,
// and maxEnded of how many it is known that they have ended.
const (
	endTimeout = 5 * time.Second
	maxEnded   = 1000
)

// leftovers are sessions that may be of no use to anyone: they end before the host would
// have to end one that someone works with. Any goroutine may use them.
//
// A session that a stateless call has begun may be gone on with at any time, since
// its name was told. Most are not: a client that never passes the name on leaves one
// behind with each call. So the newest of them stay, as many as most says, and for as
// long as the host keeps idle sessions; one that is called again is no leftover any
// more. Sessions of a connection end when that is gone, since no one else can name
// them.
type leftovers struct {
	end  func(context.Context, messages.SessionKey)
	most int

	mu     sync.Mutex
	once   []messages.SessionKey                               // called once so far, the oldest first; guarded by mu
	ending map[string]chan struct{}                            // by name; closed when the session has ended; guarded by mu
	ended  []string                                            // names, the oldest first; guarded by mu
	of     map[*mcp.ServerSession]map[messages.SessionKey]bool // of connections; guarded by mu
}

func newLeftovers(most int, end func(context.Context, messages.SessionKey)) *leftovers {
	return &leftovers{
		end: end, most: most, ending: map[string]chan struct{}{},
		of: map[*mcp.ServerSession]map[messages.SessionKey]bool{},
	}
}

// begun adds a session whose name has been told, and ends the oldest when there are
// too many.
func (l *leftovers) begun(ctx context.Context, key messages.SessionKey) {
	l.mu.Lock()
	l.once = append(l.once, key)
	over := slices.Clone(l.once[:max(0, len(l.once)-l.most)])
	l.once = slices.Delete(l.once, 0, len(over))
	for _, k := range over {
		l.ending[k.Session] = make(chan struct{})
	}
	l.mu.Unlock()
	l.endAll(ctx, over)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range over {
		close(l.ending[k.Session]) // who waits takes mu first
		delete(l.ending, k.Session)
		l.ended = append(l.ended, k.Session)
	}
	l.ended = slices.Delete(l.ended, 0, max(0, len(l.ended)-maxEnded))
}

// use says that a session is called again, and reports whether it has ended as a
// leftover. A call that comes while it is ended waits for that, so as not to be ended
// with it.
func (l *leftovers) use(ctx context.Context, name string) (ended bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.once = slices.DeleteFunc(l.once, func(k messages.SessionKey) bool { return k.Session == name })
	if ending := l.ending[name]; ending != nil {
		l.mu.Unlock()
		select {
		case <-ending:
		case <-ctx.Done():
		}
		l.mu.Lock()
	}
	at := slices.Index(l.ended, name)
	if at >= 0 {
		l.ended = slices.Delete(l.ended, at, at+1)
	}
	return at >= 0
}

// belongs says that a session is a connection's.
func (l *leftovers) belongs(c *mcp.ServerSession, key messages.SessionKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of[c] == nil {
		l.of[c] = map[messages.SessionKey]bool{}
	}
	l.of[c][key] = true
}

// sweep ends the sessions of connections that are gone.
func (l *leftovers) sweep(ctx context.Context, m *mcp.Server) {
	l.mu.Lock()
	if len(l.of) == 0 {
		l.mu.Unlock()
		return
	}
	there := map[*mcp.ServerSession]bool{}
	for c := range m.Sessions() {
		there[c] = true
	}
	var gone []messages.SessionKey
	for c, keys := range l.of {
		if there[c] {
			continue
		}
		for key := range keys {
			gone = append(gone, key)
		}
		delete(l.of, c)
	}
	l.mu.Unlock()
	l.endAll(ctx, gone)
}

// endAll ends sessions at once, also for a client that has just left.
func (l *leftovers) endAll(ctx context.Context, keys []messages.SessionKey) {
	ctx, done := opportunity.Within(context.WithoutCancel(ctx), opportunity.Budget{Opportunity: endTimeout}, nil)
	defer done()
	var ends sync.WaitGroup
	for _, key := range keys {
		ends.Go(func() { l.end(ctx, key) })
	}
	ends.Wait()
}
