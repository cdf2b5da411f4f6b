package mcpserver

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-run/coppice/messages"
)

// gather is how long output is gathered before it is sent: a client has to draw
// each notification.
const gather = 100 * time.Millisecond

// maxNote bounds one notification, in bytes.
const maxNote = 16 << 10

// watch tells a client how its call gets on. A nil watch is for a client that does
// not want to know.
type watch struct {
	s     *server
	ctx   context.Context
	req   *mcp.CallToolRequest
	token any

	stop  context.CancelFunc
	joins sync.WaitGroup
	began time.Time

	mu   sync.Mutex
	text tail      // what was not sent yet; guarded by mu
	sent time.Time // guarded by mu
	n    float64   // notifications; guarded by mu
}

// watch starts to watch a call, until end.
func (s *server) watch(ctx context.Context, req *mcp.CallToolRequest) *watch {
	token := req.Params.GetProgressToken()
	if token == nil || req.Session == nil {
		return nil
	}
	w := &watch{s: s, req: req, token: token, began: time.Now()}
	w.ctx, w.stop = context.WithCancel(ctx)
	w.joins.Go(w.keepAlive)
	return w
}

// end sends what was gathered and ends the watch: what a client shows of the
// output is then whole before the result comes.
func (w *watch) end() {
	if w == nil {
		return
	}
	w.mu.Lock()
	if w.text.len() > 0 {
		w.send()
	}
	w.mu.Unlock()
	w.stop()
	w.joins.Wait()
}

// event takes an event of the call.
func (w *watch) event(e messages.Event) {
	if s, ok := e.(messages.Stream); ok {
		w.add(s.Text)
	}
}

// add gathers output, and sends it when the last notification was a while ago. Of
// a flood a client gets the ends; all of it is in the result.
func (w *watch) add(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.add(text)
	if time.Since(w.sent) >= gather {
		w.send()
	}
}

// send sends what was gathered. w.mu is held, so that notifications leave in
// their order.
func (w *watch) send() {
	message := w.text.take()
	if message == "" {
		message = fmt.Sprintf("running for %v", time.Since(w.began).Round(time.Second))
	}
	w.n++
	w.sent = time.Now()
	// A client that is gone ends the call by its context.
	_ = w.req.Session.NotifyProgress(w.ctx, &mcp.ProgressNotificationParams{ProgressToken: w.token, Progress: w.n, Message: message})
}

// keepAlive sends what add has left, and a sign of life when there is nothing.
func (w *watch) keepAlive() {
	tick := time.NewTicker(gather)
	defer tick.Stop()
	for {
		select {
		case <-w.ctx.Done():
			return
		case <-tick.C:
		}
		w.mu.Lock()
		if since := time.Since(w.sent); w.text.len() > 0 && since >= gather || since >= w.s.o.KeepAlive && time.Since(w.began) >= w.s.o.KeepAlive {
			w.send()
		}
		w.mu.Unlock()
	}
}
