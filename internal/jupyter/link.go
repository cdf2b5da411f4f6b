package jupyter

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/gorilla/websocket"
)

// keepBuffer is the size of the frame buffer that is kept for the next frame.
// One large message must not cost its size for ever.
const keepBuffer = 1 << 20

// mostMangled is how often a kernel may send what is not a message, before it is taken for lost;
// once it has sent soundMessages that are, it may so often again. An interrupt hits one in thousands.
const (
	mostMangled   = 3
	soundMessages = 100
)

// link is one WebSocket to a kernel. A kernel has one at a time and, after a
// connection broke, another one.
type link struct {
	ws *websocket.Conn
	// tcp is the connection below ws. Closing it is what ends the link: it
	// never waits, unlike a farewell at a higher level.
	tcp *tunedConn
	// down is closed when the reader has ended.
	down chan struct{}
	// pong holds the payload of a ping that is to be answered.
	pong chan string
	// first holds what goes out before anything else.
	first []frame
}

// newLink takes over a connection.
func newLink(ws *websocket.Conn, tcp *tunedConn) *link {
	l := &link{ws: ws, tcp: tcp, down: make(chan struct{}), pong: make(chan string, 1)}
	// The default handler writes the pong from the reader, which would hold the
	// reader back while a large frame is written. A pong that finds another one
	// waiting is dropped: RFC 6455 section 5.5.3 wants the latest answered.
	ws.SetPingHandler(func(data string) error {
		select {
		case l.pong <- data:
		default:
		}
		return nil
	})
	return l
}

// v1 reports which framing the connection agreed on.
func (l *link) v1() bool { return l.ws.Subprotocol() == subprotocolV1 }

// serve is the kernel's own goroutine: it is the reader of one link after
// another, until the kernel is lost; then it ends what ran. Each link has a
// writer goroutine, which ends with it.
func (k *Kernel) serve(l *link) {
	defer k.endLost()
	for l != nil {
		written := make(chan struct{})
		go func() {
			defer close(written)
			k.writeLoop(l)
		}()
		why := k.readLoop(l)
		_ = l.tcp.Close()
		close(l.down)
		<-written
		if why == nil || k.Err() != nil {
			return
		}
		l = k.relink(why)
	}
}

// readLoop is the reader: it reads until the link ends and never waits for
// anything else, since the server buffers without bound for a client that does
// not read. Its buffer and the connection's read half belong to it. It returns
// why the connection broke, nil when the kernel is lost.
func (k *Kernel) readLoop(l *link) *LostError {
	var buf bytes.Buffer
	for {
		kind, r, err := l.ws.NextReader()
		if err == nil {
			buf.Reset()
			_, err = io.Copy(&buf, r)
		}
		if err != nil {
			why, broken := connectionLost(err)
			if !broken {
				k.lose(why)
				return nil
			}
			return why
		}
		m, err := decodeFrame(k.v1, kind, buf.Bytes())
		switch {
		case errors.Is(err, errMessage) && k.mangled < mostMangled:
			k.mangled, k.sound = k.mangled+1, 0 // what was in it is asked for, as after a connection that broke
			return &LostError{Reason: "the kernel sent something that is not a message", Err: err}
		case err != nil:
			k.lose(&LostError{Reason: "the server sent something that is not a message", Err: err})
			return nil
		}
		if k.sound++; k.sound >= soundMessages {
			k.mangled = 0
		}
		k.client.trace(TraceRecord{
			Direction: Received, Kernel: k.id, Channel: m.channel, Type: m.header.MsgType,
			ID: m.header.MsgID, Parent: m.parent.MsgID, Bytes: buf.Len(),
		})
		m.kind, m.frame = kind, buf.Bytes()
		if lost := k.route(&m); lost != nil {
			k.lose(lost)
			return nil
		}
		if buf.Cap() > keepBuffer {
			buf = bytes.Buffer{}
		}
	}
}

// repeats reports whether f answers a question and stands in what the link began with: it was
// handed in while there was none. The code may ask again as soon as it has the first one, and
// would take the second for the answer to that.
func (l *link) repeats(f frame) bool {
	return f.header.MsgType == typeInputReply && slices.ContainsFunc(l.first, func(other frame) bool { return other.header.MsgID == f.header.MsgID })
}

// writeLoop is the writer: every data frame and every ping goes through it. It
// also is the kernel's clock for executions that do not settle. An error ends
// the link, not the kernel.
func (k *Kernel) writeLoop(l *link) {
	defer func() { _ = l.tcp.Close() }()
	for _, f := range l.first {
		if k.write(l, f) != nil {
			return
		}
	}
	ping := time.NewTicker(k.client.opts.PingEvery)
	defer ping.Stop()
	settle := time.NewTimer(time.Hour)
	settle.Stop()
	defer settle.Stop()
	if len(l.first) > 0 { // after a break, an execution may have to be settled
		settle.Reset(k.settleIn())
	}
	for {
		var err error
		select {
		case <-l.down:
			return
		case <-k.Done():
			<-l.down // whoever lost the kernel ends the link, with a farewell perhaps
			return
		case f := <-k.out:
			if l.repeats(f) {
				continue
			}
			err = k.write(l, f)
			if f.begins() {
				settle.Reset(k.settleIn())
			}
		case data := <-l.pong:
			err = l.ws.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(k.client.opts.WriteTimeout))
		case <-ping.C:
			err = l.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(k.client.opts.WriteTimeout))
		case <-k.arm:
			settle.Reset(k.settleIn())
		case <-settle.C:
			again, out := k.settle()
			for i := 0; i < len(out) && err == nil; i++ {
				err = k.write(l, out[i])
			}
			if again > 0 {
				settle.Reset(again)
			}
		}
		if err != nil {
			return
		}
	}
}

// write sends one frame.
func (k *Kernel) write(l *link, f frame) error {
	if f.begins() {
		k.noteSent(f.header.MsgID)
	}
	if err := l.ws.SetWriteDeadline(time.Now().Add(k.client.opts.WriteTimeout)); err != nil {
		return err
	}
	k.client.trace(TraceRecord{
		Direction: Sent, Kernel: k.id, Channel: f.channel, Type: f.header.MsgType,
		ID: f.header.MsgID, Bytes: len(f.data),
	})
	return l.ws.WriteMessage(f.kind, f.data)
}

// begins reports whether f is a request that is seen through like an execution.
func (f frame) begins() bool {
	switch f.header.MsgType {
	case typeExecuteRequest, typeCompleteRequest, typeInspectRequest:
		return true
	}
	return false
}

// noteSent notes that an execution may have reached the kernel from now on.
func (k *Kernel) noteSent(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.exec != nil && k.exec.id == id {
		k.exec.sent = true
	}
}
