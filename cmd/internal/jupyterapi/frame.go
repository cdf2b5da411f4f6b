package jupyterapi

import (
	"encoding/binary"
	"encoding/json"
	"errors"

	"github.com/gorilla/websocket"
)

// subprotocol is the framing in which every message is one binary frame of raw parts.
// Without it a message is JSON text, or binary when it has buffers.
const subprotocol = "v1.kernel.websocket.jupyter.org"

// The channels.
const (
	shell   = "shell"
	control = "control"
	stdin   = "stdin"
	iopub   = "iopub"
)

// errFrame stands for bytes that are no message.
var errFrame = errors.New("malformed frame")

// none is an object without members.
var none = json.RawMessage("{}")

// message is one of the protocol, in either direction. Headers are kept as they came: they
// are the parents of what follows from them.
type message struct {
	Header   json.RawMessage `json:"header"`
	ID       string          `json:"msg_id"`
	Type     string          `json:"msg_type"`
	Parent   json.RawMessage `json:"parent_header"`
	Metadata json.RawMessage `json:"metadata"`
	Content  json.RawMessage `json:"content"`
	Channel  string          `json:"channel"`
	Buffers  []any           `json:"buffers"` // always empty: none are sent
}

// read fills ID and Type from the header.
func (m message) read() (message, error) {
	var head struct {
		ID   string `json:"msg_id"`
		Type string `json:"msg_type"`
	}
	if err := json.Unmarshal(m.Header, &head); err != nil {
		return m, errors.Join(errFrame, err)
	}
	if head.ID == "" || head.Type == "" {
		return m, errFrame
	}
	m.ID, m.Type = head.ID, head.Type
	if m.Channel == "" { // Jupyter's own client of a gateway says none
		m.Channel = shell
	}
	if len(m.Content) == 0 {
		m.Content = none
	}
	return m, nil
}

// decode reads one frame. Buffers are left out: they belong to comms.
func decode(v1 bool, kind int, data []byte) (message, error) {
	if v1 {
		return decodeParts(data)
	}
	if kind == websocket.BinaryMessage {
		if len(data) < 8 {
			return message{}, errFrame
		}
		n, from, to := uint64(binary.BigEndian.Uint32(data)), uint64(binary.BigEndian.Uint32(data[4:])), uint64(len(data))
		if n > 1 && len(data) >= 12 {
			to = uint64(binary.BigEndian.Uint32(data[8:]))
		}
		if n < 1 || from > to || to > uint64(len(data)) {
			return message{}, errFrame
		}
		data = data[from:to]
	}
	var m message
	if err := json.Unmarshal(data, &m); err != nil {
		return m, errors.Join(errFrame, err)
	}
	return m.read()
}

// decodeParts reads the framing of the subprotocol: the count of offsets and the offsets,
// little-endian 64-bit numbers, then channel, header, parent header, metadata, content and
// buffers, each from its offset to the next.
func decodeParts(data []byte) (message, error) {
	if len(data) < 8 {
		return message{}, errFrame
	}
	n := binary.LittleEndian.Uint64(data)
	if n < 6 || n > uint64(len(data))/8-1 {
		return message{}, errFrame
	}
	last := 8 * (n + 1)
	var parts [5][]byte
	for i := range uint64(6) {
		at := binary.LittleEndian.Uint64(data[8*(i+1):])
		if at < last || at > uint64(len(data)) {
			return message{}, errFrame
		}
		if i > 0 {
			parts[i-1] = data[last:at]
		}
		last = at
	}
	for _, p := range parts[1:] {
		if len(p) > 0 && !json.Valid(p) {
			return message{}, errFrame
		}
	}
	return message{Channel: string(parts[0]), Header: parts[1], Parent: parts[2], Metadata: parts[3], Content: parts[4]}.read()
}

// encode writes a message in the framing that a connection agreed on.
func (m message) encode(v1 bool) (kind int, data []byte, err error) {
	if !v1 {
		m.Buffers = []any{}
		data, err = json.Marshal(m)
		return websocket.TextMessage, data, err
	}
	parts := [][]byte{[]byte(m.Channel), m.Header, m.Parent, m.Metadata, m.Content}
	n := len(parts) + 1
	at := 8 * (n + 1)
	data = binary.LittleEndian.AppendUint64(nil, uint64(n))
	data = binary.LittleEndian.AppendUint64(data, uint64(at))
	for _, p := range parts {
		at += len(p)
		data = binary.LittleEndian.AppendUint64(data, uint64(at))
	}
	for _, p := range parts {
		data = append(data, p...)
	}
	return websocket.BinaryMessage, data, nil
}
