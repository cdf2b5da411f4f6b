package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

// statelessProtocol is the first version without requests from server to client.
const statelessProtocol = "2026-07-28"

// watch tells a client how its call gets on, and asks it for input. A nil watch
// is for a client that wants neither.
type watch struct {
	s     *server
	ctx   context.Context
	req   *mcp.CallToolRequest
	token any  // nil: no progress
	asks  bool // the client can be asked

	stop  context.CancelFunc
	joins sync.WaitGroup
	began time.Time

	mu   sync.Mutex
	text strings.Builder // what was not sent yet; guarded by mu
	sent time.Time       // guarded by mu
	n    float64         // notifications; guarded by mu
}

// watch starts to watch a call, until end.
func (s *server) watch(ctx context.Context, req *mcp.CallToolRequest) *watch {
	token := req.Params.GetProgressToken()
	capabilities := req.ClientCapabilities()
	// Since 2026-07-28 a server may not ask while it serves a request.
	asks := capabilities != nil && capabilities.Elicitation != nil && req.ProtocolVersion() < statelessProtocol
	if token == nil && !asks || req.Session == nil {
		return nil
	}
	w := &watch{s: s, req: req, token: token, asks: asks, began: time.Now()}
	w.ctx, w.stop = context.WithCancel(ctx)
	if token != nil {
		w.joins.Go(w.keepAlive)
	}
	return w
}

func (w *watch) end() {
	if w == nil {
		return
	}
	w.stop()
	w.joins.Wait()
}

// event takes an event of the call.
func (w *watch) event(e messages.Event) {
	if s, ok := e.(messages.Stream); ok {
		w.add(s.Text)
	}
}

// add gathers output, and sends it when there is much of it or when the last
// notification was a while ago. What is left is in the result.
func (w *watch) add(text string) {
	if w.token == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.WriteString(text)
	if time.Since(w.sent) >= gather || w.text.Len() >= maxNote {
		w.send()
	}
}

// send sends what was gathered. w.mu is held, so that notifications leave in
// their order.
func (w *watch) send() {
	message := w.text.String()
	w.text.Reset()
	if len(message) > maxNote {
		message = fmt.Sprintf("… (%d bytes)\n%s", len(message)-maxNote, strings.ToValidUTF8(message[len(message)-maxNote:], ""))
	}
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
		if since := time.Since(w.sent); w.text.Len() > 0 && since >= gather || since >= w.s.o.KeepAlive && time.Since(w.began) >= w.s.o.KeepAlive {
			w.send()
		}
		w.mu.Unlock()
	}
}

// inputSchema is the form for one line of input.
var inputSchema = map[string]any{
	"type":       "object",
	"properties": map[string]any{"value": map[string]any{"type": "string", "title": "Input"}},
	"required":   []string{"value"},
}

// errDeclined is what input() hears of a user who gives no answer.
var errDeclined = errors.New("the user gave no answer")

// ask asks the user for a line of input.
func (w *watch) ask(ctx context.Context, q messages.InputRequest) (string, error) {
	prompt := q.Prompt
	if prompt == "" {
		prompt = "The Python code asks for a line of input."
	}
	r, err := w.req.Session.Elicit(ctx, &mcp.ElicitParams{Message: prompt, RequestedSchema: inputSchema})
	if err != nil {
		w.s.o.Logger.Info("the user could not be asked", "err", err)
		return "", fmt.Errorf("ask the user: %w", err)
	}
	value, ok := r.Content["value"].(string)
	if r.Action != "accept" || !ok {
		return "", errDeclined
	}
	return value, nil
}
