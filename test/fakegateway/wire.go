package fakegateway

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

const v1 = "v1.kernel.websocket.jupyter.org"

// Message is one message in either direction, as JSON objects.
type Message struct {
	Channel  string
	Header   map[string]any
	Parent   map[string]any
	Metadata map[string]any
	Content  map[string]any
}

// field returns a string of the header.
func (m Message) field(name string) string {
	v, _ := m.Header[name].(string)
	return v
}

// client is one WebSocket.
type client struct {
	ws      *websocket.Conn
	raw     net.Conn
	session string // session_id of the handshake

	// What goes out or comes in vanishes.
	swallowOut, swallowIn atomic.Bool

	mu     sync.Mutex
	frozen chan struct{} // guarded by mu: not nil once frozen
}

// channels is the WebSocket endpoint.
func (s *Server) channels(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	f := s.faults
	select {
	case <-s.closing:
		s.mu.Unlock()
		return
	default:
	}
	// The server's Close does not know of a connection that was taken over.
	s.joins.Add(1)
	s.mu.Unlock()
	defer s.joins.Done()
	if f.DieAtBirth {
		select {
		case <-r.Context().Done():
		case <-s.closing:
		}
		return
	}
	k := s.find(w, r)
	if k == nil {
		return
	}
	if f.HoldHandshake != nil {
		select {
		case <-f.HoldHandshake:
		case <-r.Context().Done():
			return
		case <-s.closing:
			return
		}
	}
	up := websocket.Upgrader{CheckOrigin: func(r *http.Request) bool { return r.Header.Get("Origin") == "" }}
	if !s.opts.Legacy {
		up.Subprotocols = []string{v1}
	}
	ws, err := up.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	c := &client{ws: ws, raw: ws.NetConn(), session: r.URL.Query().Get("session_id")}
	ws.SetPingHandler(func(data string) error {
		if !c.isFrozen() {
			_ = ws.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(time.Second))
		}
		return nil
	})
	if !k.attach(c) {
		_ = ws.Close()
		return
	}
	defer k.detach(c)
	for {
		if c.isFrozen() {
			<-c.frozenUntil()
			return
		}
		kind, data, err := ws.ReadMessage()
		if err != nil {
			if c.isFrozen() {
				<-c.frozenUntil()
			}
			return
		}
		m, err := c.decode(kind, data)
		if err != nil {
			return
		}
		if c.swallowIn.Load() {
			k.swallow(m)
			continue
		}
		k.receive(c, m)
	}
}

// freeze makes the connection half open: it neither reads nor writes, and what the
// other side sends soon finds no room.
func (c *client) freeze() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.frozen == nil {
		c.frozen = make(chan struct{})
		if t, ok := c.raw.(*net.TCPConn); ok {
			_ = t.SetReadBuffer(4 << 10)
		}
		_ = c.raw.SetReadDeadline(time.Now()) // who reads stops
	}
}

func (c *client) isFrozen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.frozen != nil
}

func (c *client) frozenUntil() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.frozen
}

// drop closes the TCP connection, without a farewell.
func (c *client) drop() {
	c.mu.Lock()
	if c.frozen != nil {
		select {
		case <-c.frozen:
		default:
			close(c.frozen)
		}
	}
	c.mu.Unlock()
	_ = c.raw.Close()
}

// write sends one frame; its failure shows at the reader.
func (c *client) write(kind int, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.frozen == nil && !c.swallowOut.Load() {
		_ = c.ws.WriteMessage(kind, data)
	}
}

// send encodes m in the framing of the connection.
func (c *client) send(m Message) {
	part := func(v map[string]any) []byte {
		if v == nil {
			v = map[string]any{}
		}
		b, err := json.Marshal(v)
		if err != nil {
			panic("fakegateway: " + err.Error())
		}
		return b
	}
	if c.ws.Subprotocol() != v1 {
		b, err := json.Marshal(map[string]any{
			"channel": m.Channel, "header": m.Header, "parent_header": json.RawMessage(part(m.Parent)),
			"metadata": json.RawMessage(part(m.Metadata)), "content": json.RawMessage(part(m.Content)), "buffers": []any{},
		})
		if err != nil {
			panic("fakegateway: " + err.Error())
		}
		c.write(websocket.TextMessage, b)
		return
	}
	parts := [][]byte{[]byte(m.Channel), part(m.Header), part(m.Parent), part(m.Metadata), part(m.Content)}
	offset := uint64(8 * (len(parts) + 2))
	frame := binary.LittleEndian.AppendUint64(nil, uint64(len(parts)+1))
	for _, p := range parts {
		frame = binary.LittleEndian.AppendUint64(frame, offset)
		offset += uint64(len(p))
	}
	frame = binary.LittleEndian.AppendUint64(frame, offset)
	for _, p := range parts {
		frame = append(frame, p...)
	}
	c.write(websocket.BinaryMessage, frame)
}

// decode reads what a client sent.
func (c *client) decode(kind int, data []byte) (m Message, err error) {
	if c.ws.Subprotocol() != v1 {
		var in struct {
			Channel string         `json:"channel"`
			Header  map[string]any `json:"header"`
			Parent  map[string]any `json:"parent_header"`
			Content map[string]any `json:"content"`
		}
		if kind != websocket.TextMessage {
			return m, errors.New("not a text frame")
		}
		err = json.Unmarshal(data, &in)
		return Message{Channel: in.Channel, Header: in.Header, Parent: in.Parent, Content: in.Content}, err
	}
	if len(data) < 8*7 {
		return m, errors.New("short frame")
	}
	var at [6]uint64
	for i := range at {
		at[i] = binary.LittleEndian.Uint64(data[8*(i+1):])
		if at[i] > uint64(len(data)) || (i > 0 && at[i] < at[i-1]) {
			return m, errors.New("bad offset")
		}
	}
	m.Channel = string(data[at[0]:at[1]])
	for i, into := range []*map[string]any{&m.Header, &m.Parent, &m.Metadata, &m.Content} {
		if err := json.Unmarshal(data[at[i+1]:at[i+2]], into); err != nil {
			return m, err
		}
	}
	return m, nil
}
