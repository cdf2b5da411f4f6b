package jupyterapi

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

const (
	// maxMessage bounds a message of a client, in bytes.
	maxMessage = 32 << 20
	// outgoing is how many messages wait for a client before it holds the output back.
	outgoing = 256
	// writeTime is how long a client may take for one message.
	writeTime = time.Minute
	// pingTime is how often a client is asked whether it is there, and silent after how
	// long without an answer it is not.
	pingTime, silent = 30 * time.Second, 100 * time.Second
)

// upgrader makes WebSockets; httpserver has looked at the origin.
var upgrader = websocket.Upgrader{
	HandshakeTimeout: 10 * time.Second, WriteBufferSize: 16 << 10, ReadBufferSize: 4 << 10,
	CheckOrigin: func(*http.Request) bool { return true },
}

// client is one connection to a kernel.
type client struct {
	conn *websocket.Conn
	v1   bool
	// session is what the client calls itself, over all its connections; "": it does not.
	session string
	missed  []message // what was kept for it while it was away, and how many more were not
	lost    int
	out     chan message
	gone    chan struct{} // closed when nothing more is to be sent
	once    sync.Once
}

// leave lets the client go, after what waits for it.
func (c *client) leave() { c.once.Do(func() { close(c.gone) }) }

// send hands a message to the client, and waits for room.
func (c *client) send(m message) {
	select {
	case c.out <- m:
	case <-c.gone:
	}
}

// put writes one message.
func (c *client) put(m message) error {
	kind, data, err := m.encode(c.v1)
	if err != nil {
		return err
	}
	if err := c.conn.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return err
	}
	return c.conn.WriteMessage(kind, data)
}

// write sends what is handed to the client, until it goes.
func (c *client) write() {
	defer func() { _ = c.conn.Close() }() // which ends read, too
	defer c.leave()
	ping := time.NewTicker(pingTime)
	defer ping.Stop()
	for _, m := range c.missed {
		if c.put(m) != nil {
			return
		}
	}
	c.missed = nil
	for {
		select {
		case m := <-c.out:
			if c.put(m) != nil {
				return
			}
		case <-ping.C:
			if c.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeTime)) != nil {
				return
			}
		case <-c.gone:
			for len(c.out) > 0 { // no one else takes from it
				if c.put(<-c.out) != nil {
					return
				}
			}
			_ = c.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(time.Second)) // it is closed anyway
			return
		}
	}
}

// read hands on what the client sends, until it goes.
func (c *client) read(hear func(message)) {
	c.conn.SetReadLimit(maxMessage)
	alive := func(string) error { return c.conn.SetReadDeadline(time.Now().Add(silent)) }
	c.conn.SetPongHandler(alive)
	for alive("") == nil {
		kind, data, err := c.conn.ReadMessage()
		if err != nil {
			return
		}
		m, err := decode(c.v1, kind, data)
		if err != nil {
			_ = c.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseInvalidFramePayloadData, errFrame.Error()), time.Now().Add(time.Second)) // it is closed anyway
			return
		}
		hear(m)
	}
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
