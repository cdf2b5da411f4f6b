package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/gorilla/websocket"

	"github.com/coppice-run/coppice/internal/sse"
)

// batch is how many bytes of events are read of a log at once; streamWrite bounds
// how long a reader may take for one write.
const (
	batch       = 64 << 10
	streamWrite = time.Minute
)

// events streams the events of an execution.
func (a *API) events(w http.ResponseWriter, r *http.Request) {
	x, err := a.lookup(r.PathValue("id"))
	ctx, read := a.handing.Reading(r.Context())
	defer read()
	after := uint64(0)
	if err == nil {
		after, err = cursor(r)
	}
	if err == nil {
		x.reach(ctx, after)
		if n, _, _ := x.events().Size(); after > n {
			err = unfit{errAhead.Error(), "start with 0"}
		}
	}
	if err != nil {
		a.problem(w, err)
		return
	}
	if websocket.IsWebSocketUpgrade(r) {
		a.socket(w, r.WithContext(ctx), x, after)
		return
	}
	log := x.events()
	if _, ended, err := log.Read(after, 0); ended && err == nil {
		if n, _, _ := log.Size(); n == after {
			w.WriteHeader(http.StatusNoContent) // a browser asks no more then
			return
		}
	}
	s := openStream(w)
	defer s.End()
	if s.Start() == nil {
		_ = a.follow(ctx, x, after, s.event, s.alive) // who has gone cannot be told
	}
}

// follow hands the events of an execution on, until they have ended, the reader has
// gone, or ctx ends.
func (a *API) follow(ctx context.Context, x *execution, after uint64, send func(n uint64, data []byte) error, alive func() error) error {
	log := x.events()
	for {
		entries, ended, err := log.Read(after, batch)
		if err == nil && len(entries) > 0 {
			err = x.release(ctx, log, after+uint64(len(entries)))
		}
		if err != nil {
			return err
		}
		for _, e := range entries {
			after++
			if err := send(after, e); err != nil {
				return err
			}
		}
		if ended {
			x.told.Store(true)
			return nil
		}
		if len(entries) > 0 {
			continue
		}
		wait, cancel := context.WithTimeout(ctx, a.o.KeepAlive)
		err = log.Wait(wait, after)
		cancel()
		switch {
		case err == nil: // also when the reader is to go: what there is comes first
		case ctx.Err() != nil:
			return context.Cause(ctx)
		default:
			if err := alive(); err != nil {
				return err
			}
		}
	}
}

// stream writes server-sent events.
type stream struct{ *sse.Writer }

func openStream(w http.ResponseWriter) stream { return stream{sse.NewWriter(w, streamWrite)} }

func (s stream) event(n uint64, data []byte) error {
	return s.Event("", strconv.FormatUint(n, 10), data)
}

func (s stream) alive() error { return s.Comment("alive") }

// upgrader makes WebSockets; httpserver has looked at the origin.
var upgrader = websocket.Upgrader{
	HandshakeTimeout: 10 * time.Second, WriteBufferSize: 16 << 10, ReadBufferSize: 1 << 10,
	CheckOrigin: func(*http.Request) bool { return true },
}

// socket streams events over a WebSocket: each is a message, and its member "seq"
// the cursor. The client sends nothing.
func (a *API) socket(w http.ResponseWriter, r *http.Request, x *execution, after uint64) {
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // the upgrader has answered
	}
	ctx, cancel := context.WithCancel(r.Context())
	gone := make(chan struct{})
	go func() { // ends when the connection is closed, below
		defer close(gone)
		defer cancel()
		conn.SetReadLimit(1 << 10)
		for {
			if _, _, err := conn.NextReader(); err != nil {
				return
			}
		}
	}()
	err = a.follow(ctx, x, after, func(_ uint64, data []byte) error {
		if err := conn.SetWriteDeadline(time.Now().Add(streamWrite)); err != nil {
			return err
		}
		return conn.WriteMessage(websocket.TextMessage, data)
	}, func() error { return conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(streamWrite)) })
	code, text := websocket.CloseNormalClosure, ""
	if err != nil {
		code, text = websocket.CloseGoingAway, "ask again from the last seq"
	}
	_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, text), time.Now().Add(time.Second)) // it is closed anyway
	cancel()
	_ = conn.Close()
	<-gone
}
