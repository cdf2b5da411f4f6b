package jupyterapi

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"

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
	Buffers  [][]byte        `json:"-"` // of a comm; they stand beside the message
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

// decode reads one frame. What it returns refers to data.
func decode(v1 bool, kind int, data []byte) (message, error) {
	if v1 {
		return decodeParts(data)
	}
	var buffers [][]byte
	if kind == websocket.BinaryMessage {
		parts, err := split(data)
		if err != nil {
			return message{}, err
		}
		data, buffers = parts[0], parts[1:]
	}
	var m message
	if err := json.Unmarshal(data, &m); err != nil {
		return m, errors.Join(errFrame, err)
	}
	m.Buffers = buffers
	return m.read()
}

// split reads the binary form of JSON with buffers: the count of parts and the offset of
// each, big-endian 32-bit numbers, then the message and the buffers.
func split(data []byte) ([][]byte, error) {
	if len(data) < 8 {
		return nil, errFrame
	}
	n := uint64(binary.BigEndian.Uint32(data))
	if n < 1 || n > uint64(len(data))/4-1 {
		return nil, errFrame
	}
	parts, end := make([][]byte, n), uint64(len(data))
	for i := n; i > 0; i-- { // each ends where the next one begins
		at := uint64(binary.BigEndian.Uint32(data[4*i:]))
		if at < 4*(n+1) || at > end {
			return nil, errFrame
		}
		parts[i-1], end = data[at:end], at
	}
	return parts, nil
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
	var buffers [][]byte
	for i := range n {
		at := binary.LittleEndian.Uint64(data[8*(i+1):])
		switch {
		case at < last, at > uint64(len(data)):
			return message{}, errFrame
		case i > 5:
			buffers = append(buffers, data[last:at])
		case i > 0:
			parts[i-1] = data[last:at]
		}
		last = at
	}
	for _, p := range parts[1:] {
		if len(p) > 0 && !json.Valid(p) {
			return message{}, errFrame
		}
	}
	return message{Channel: string(parts[0]), Header: parts[1], Parent: parts[2], Metadata: parts[3], Content: parts[4], Buffers: buffers}.read()
}

// encode writes a message in the framing that a connection agreed on.
func (m message) encode(v1 bool) (kind int, data []byte, err error) {
	if v1 {
		return websocket.BinaryMessage, m.join(), nil
	}
	data, err = json.Marshal(struct {
		message
		Buffers []any `json:"buffers"` // they stand beside it
	}{m, []any{}})
	if len(m.Buffers) == 0 || err != nil {
		return websocket.TextMessage, data, err
	}
	parts := append([][]byte{data}, m.Buffers...)
	at := 4 * (len(parts) + 1)
	out := binary.BigEndian.AppendUint32(nil, uint32(len(parts)))
	for _, p := range parts {
		out = binary.BigEndian.AppendUint32(out, uint32(at))
		at += len(p)
	}
	if at > math.MaxUint32 {
		return websocket.BinaryMessage, nil, fmt.Errorf("a message of %d bytes is too long for this framing", at)
	}
	for _, p := range parts {
		out = append(out, p...)
	}
	return websocket.BinaryMessage, out, nil
}

// join writes the framing that decodeParts reads.
func (m message) join() []byte {
	parts := append([][]byte{[]byte(m.Channel), m.Header, m.Parent, m.Metadata, m.Content}, m.Buffers...)
	n := len(parts) + 1
	at := 8 * (n + 1)
	data := binary.LittleEndian.AppendUint64(nil, uint64(n))
	data = binary.LittleEndian.AppendUint64(data, uint64(at))
	for _, p := range parts {
		at += len(p)
		data = binary.LittleEndian.AppendUint64(data, uint64(at))
	}
	for _, p := range parts {
		data = append(data, p...)
	}
	return data
}
