package jupyter

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/gorilla/websocket"
)

// keepBuffer is the size of the frame buffer that is kept for the next frame.
// One large message must not cost its size for ever.
const keepBuffer = 1 << 20

// writeTimeout bounds one write. The server reads all the time, except in the
// first second of a connection.
const writeTimeout = 30 * time.Second

// readLoop is the reader: it reads until the connection ends and never waits
// for anything else, since the server buffers without bound for a client that
// does not read. Its buffer and the connection's read half belong to it.
func (k *Kernel) readLoop() {
	var buf bytes.Buffer
	for {
		kind, r, err := k.ws.NextReader()
		if err == nil {
			buf.Reset()
			_, err = io.Copy(&buf, r)
		}
		if err != nil {
			k.lose(k.connectionLost(err))
			return
		}
		m, err := decodeFrame(k.v1, kind, buf.Bytes())
		if err != nil {
			k.lose(&LostError{Reason: "the server sent something that is not a message", Err: err})
			return
		}
		k.client.trace(TraceRecord{
			Direction: Received, Kernel: k.id, Channel: m.channel, Type: m.header.MsgType,
			ID: m.header.MsgID, Parent: m.parent.MsgID, Bytes: buf.Len(),
		})
		if lost := k.route(&m, buf.Len()); lost != nil {
			k.lose(lost)
			return
		}
		if buf.Cap() > keepBuffer {
			buf = bytes.Buffer{}
		}
	}
}

// connectionLost words the end of the connection.
func (k *Kernel) connectionLost(err error) *LostError {
	if errors.Is(err, websocket.ErrReadLimit) {
		return &LostError{Reason: "the server sent a message larger than allowed", Err: err}
	}
	if ce := (*websocket.CloseError)(nil); errors.As(err, &ce) && ce.Code != websocket.CloseAbnormalClosure {
		// The text that comes with the code is the server's.
		return &LostError{Reason: "its server closed the connection", Err: fmt.Errorf("code %d", ce.Code)}
	}
	if ne := net.Error(nil); errors.As(err, &ne) && ne.Timeout() {
		return &LostError{Reason: "the connection to its server went silent", Err: err}
	}
	return &LostError{Reason: "the connection to its server ended", Err: err}
}

// writeLoop is the writer: every data frame and every ping goes through it. It
// also is the kernel's clock for executions that do not settle.
func (k *Kernel) writeLoop() {
	ping := time.NewTicker(k.client.opts.PingEvery)
	defer ping.Stop()
	settle := time.NewTimer(time.Hour)
	settle.Stop()
	defer settle.Stop()
	for {
		var err error
		select {
		case <-k.done:
			return
		case f := <-k.out:
			err = k.write(f)
		case data := <-k.pong:
			err = k.ws.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(writeTimeout))
		case <-ping.C:
			err = k.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeTimeout))
		case <-k.arm:
			settle.Reset(k.client.opts.Settle)
		case <-settle.C:
			again, probe := k.settle()
			if probe != nil {
				err = k.write(*probe)
			}
			if again > 0 {
				settle.Reset(again)
			}
		}
		if err != nil {
			k.lose(k.connectionLost(err))
			return
		}
	}
}

// write sends one frame.
func (k *Kernel) write(f frame) error {
	if err := k.ws.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	k.client.trace(TraceRecord{
		Direction: Sent, Kernel: k.id, Channel: f.channel, Type: f.header.MsgType,
		ID: f.header.MsgID, Bytes: len(f.data),
	})
	return k.ws.WriteMessage(f.kind, f.data)
}

// route decides what a message means. It is called by the reader. A result
// that is not nil ends the kernel.
func (k *Kernel) route(m *message, size int) *LostError {
	k.mu.Lock()
	k.stats.Received++
	k.stats.ReceivedBytes += int64(size)
	if m.header.Session != k.session {
		k.numbers.observe(m.header.MsgID)
	}
	verified := k.kernelSession
	x := k.exec
	a := k.asks[m.parent.MsgID]
	k.mu.Unlock()

	if lost := k.fate(m, verified); lost != nil {
		return lost
	}
	// What the server itself says carries our session id, since the id names
	// the connection. The kernel never uses it.
	if m.header.Session == k.session {
		if saysRateLimited(m) {
			k.markRateLimited(m)
		}
		return nil
	}
	if verified != "" && m.header.Session != "" && m.header.Session != verified {
		if saysRateLimited(m) {
			k.markRateLimited(m)
			return nil
		}
		return &LostError{Reason: "its process was replaced by a new one", Replaced: true}
	}

	switch parent := m.parent.MsgID; {
	case parent == "":
		k.countForeign()
	case a != nil:
		deliver(a, m)
	case x != nil && parent == x.id:
		k.routeExecution(x, m)
	case x != nil && x.isProbe(k, parent):
		k.routeProbe(x, m)
	case m.parent.Session == k.session:
		if outputKinds[m.header.MsgType] != 0 {
			k.mu.Lock()
			k.countBackgroundLocked(m)
			k.mu.Unlock()
		}
	default:
		k.countForeign()
		k.mu.Lock()
		k.strangers++
		k.mu.Unlock()
	}
	return nil
}

// fate reads the messages that tell what became of the kernel's process.
func (k *Kernel) fate(m *message, verified string) *LostError {
	if m.channel != chanIOPub {
		return nil
	}
	switch m.header.MsgType {
	case typeStatus:
		switch decodeState(m.content) {
		case "dead":
			return &LostError{Reason: "its process died"}
		case "restarting":
			return &LostError{Reason: "its process died and the server started a new one", Replaced: true}
		case "starting":
			// Every process says so once, before all else. The verified one has
			// said it.
			if verified != "" && m.header.Session != k.session {
				return &LostError{Reason: "its process was replaced by a new one", Replaced: true}
			}
		}
	case typeShutdownReply:
		// The kernel answers a shutdown that somebody asked the server for.
		if decodeRestart(m.content) {
			return &LostError{Reason: "it was restarted from outside", Replaced: true}
		}
		return &LostError{Reason: "it was shut down from outside"}
	}
	return nil
}

// deliver hands an answer to whoever asked. Answers that find no room are
// repeated ones; they are dropped.
func deliver(a *ask, m *message) {
	out := answer{id: m.parent.MsgID, session: m.header.Session}
	switch m.header.MsgType {
	case typeInfoReply, typeInterruptReply:
		out.content = append([]byte(nil), m.content...)
	case typeStatus:
		if decodeState(m.content) != "idle" {
			return
		}
		out.idle = true
	default:
		return
	}
	select {
	case a.answers <- out:
	default:
	}
}

// isProbe reports whether id is that of a probe of x.
func (x *execution) isProbe(k *Kernel, id string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return x.probes[id]
}

// countForeign counts a message that is not for us.
func (k *Kernel) countForeign() {
	k.mu.Lock()
	k.stats.Foreign++
	k.mu.Unlock()
}
