package jupyterapi

import (
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
