package jupyterapi

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/gorilla/websocket"
)

// upgrader makes WebSockets; httpserver has looked at the origin.
var upgrader = websocket.Upgrader{
	HandshakeTimeout: 10 * time.Second, WriteBufferSize: 16 << 10, ReadBufferSize: 4 << 10,
	CheckOrigin: func(*http.Request) bool { return true },
}

// channels connects a client to a kernel.
func (a *API) channels(w http.ResponseWriter, r *http.Request) {
	k := a.named(w, r)
	if k == nil {
		return
	}
	if !websocket.IsWebSocketUpgrade(r) {
		refuse(w, http.StatusBadRequest, "Bad Request", "the channels of a kernel are a WebSocket")
		return
	}
	var chosen http.Header
	v1 := slices.Contains(websocket.Subprotocols(r), subprotocol)
	if v1 {
		chosen = http.Header{"Sec-Websocket-Protocol": {subprotocol}}
	}
	// It listens before it knows that it is connected: what it asks for by another connection
	// then, it sees.
	c := &client{v1: v1, session: r.URL.Query().Get("session_id"), out: make(chan message, outgoing), gone: make(chan struct{})}
	k.attach(c)
	defer a.parted(r.Context(), k, c)
	var err error
	if c.conn, err = upgrader.Upgrade(w, r, chosen); err != nil {
		return // the upgrader has answered
	}
	written := make(chan struct{})
	serve := func() {
		defer close(written)
		c.write()
	}
	if !a.begin(serve) {
		_ = c.conn.Close()
		return
	}
	defer context.AfterFunc(r.Context(), c.leave)()
	defer context.AfterFunc(k.life, c.leave)()
	c.read(func(m message) { k.hear(c, m) })
	c.leave()
	<-written
}

// parted forgets a client that has gone, and ends the kernel that was leased to it.
func (a *API) parted(ctx context.Context, k *kernel, c *client) {
	over := k.audience.part(c)
	c.leave()
	if over && k.life.Err() == nil {
		if err := a.stop(context.WithoutCancel(ctx), k); err != nil {
			a.o.Logger.Warn("a kernel did not end with its connection", "kernel", k.id, "err", err)
		}
	}
}
