package jupyter

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/gorilla/websocket"
)

// subprotocolV1 is the framing in which every message is one binary frame of
// raw parts. Without it a server speaks the older framing: JSON text, or binary
// when a message has buffers.
const subprotocolV1 = "v1.kernel.websocket.jupyter.org"

// errFrame stands for bytes that are not a message. They are not quoted.
var errFrame = errors.New("malformed frame")

// frameError says what is wrong with a frame.
func frameError(what string) error { return fmt.Errorf("%w: %s", errFrame, what) }

// errMessage stands for a frame in good form around what is not a message: its server has passed
// on what the kernel sent. An interrupt can end ipykernel's sending of one half-way, and the next
// one goes out as the rest of it.
var errMessage = errors.New("malformed message")

// messageError says what is wrong with a message.
func messageError(what string) error { return fmt.Errorf("%w: %s", errMessage, what) }

// frame is a message on its way out.
type frame struct {
	channel string
	header  header
	// kind is websocket.TextMessage or BinaryMessage.
	kind int
	data []byte
}

// decodeFrame reads one frame in the framing that the connection agreed on.
// The message refers to data: it is valid as long as data is.
func decodeFrame(v1 bool, kind int, data []byte) (message, error) {
	switch {
	case v1 && kind == websocket.BinaryMessage:
		return decodeV1(data)
	case !v1 && kind == websocket.TextMessage:
		return decodeLegacy(data)
	case !v1 && kind == websocket.BinaryMessage:
		return decodeLegacyBinary(data)
	}
	return message{}, frameError("a text frame in a binary protocol")
}

// decodeV1 reads the binary framing: the count of offsets and the offsets as
// little-endian 64-bit numbers, then channel, header, parent header, metadata,
// content and buffers, each from its offset to the next. The last offset is
// the end.
func decodeV1(data []byte) (message, error) {
	if len(data) < 8 {
		return message{}, frameError("no offset count")
	}
	n := binary.LittleEndian.Uint64(data)
	// Five parts have six offsets. The bound also keeps 8*(n+1) in range.
	if n < 6 || n > uint64(len(data))/8 {
		return message{}, frameError("impossible offset count")
	}
	start := 8 * (n + 1)
	var parts [5][]byte
	var buffers [][]byte
	last := start
	for i := range n {
		if 8*(i+2) > uint64(len(data)) {
			return message{}, frameError("offsets are cut off")
		}
		at := binary.LittleEndian.Uint64(data[8*(i+1):])
		if at < last || at > uint64(len(data)) {
			return message{}, frameError("offset out of order")
		}
		switch {
		case i > 5:
			buffers = append(buffers, data[last:at])
		case i > 0:
			parts[i-1] = data[last:at]
		}
		last = at
	}
	m, err := decodeParts(string(parts[0]), parts[1], parts[2], parts[3], parts[4])
	m.buffers = buffers
	return m, err
}

// encodeV1 builds the binary framing.
func encodeV1(channel string, parts ...[]byte) []byte {
	n := len(parts) + 2
	at := 8 * (n + 1)
	size := at + len(channel)
	for _, p := range parts {
		size += len(p)
	}
	out := make([]byte, 0, size)
	out = binary.LittleEndian.AppendUint64(out, uint64(n))
	out = binary.LittleEndian.AppendUint64(out, uint64(at))
	at += len(channel)
	out = binary.LittleEndian.AppendUint64(out, uint64(at))
	for _, p := range parts {
		at += len(p)
		out = binary.LittleEndian.AppendUint64(out, uint64(at))
	}
	out = append(out, channel...)
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// decodeLegacyBinary reads the older binary framing: the count of parts and
// their offsets as big-endian 32-bit numbers, then the JSON message, then its
// buffers.
func decodeLegacyBinary(data []byte) (message, error) {
	if len(data) < 8 {
		return message{}, frameError("no part count")
	}
	n := uint64(binary.BigEndian.Uint32(data))
	if n < 1 || 4*(n+1) > uint64(len(data)) {
		return message{}, frameError("impossible part count")
	}
	last := 4 * (n + 1)
	parts := make([][]byte, n)
	for i := range n {
		from, to := uint64(binary.BigEndian.Uint32(data[4*(i+1):])), uint64(len(data))
		if i+1 < n {
			to = uint64(binary.BigEndian.Uint32(data[4*(i+2):]))
		}
		if from < last || to < from || to > uint64(len(data)) {
			return message{}, frameError("offset out of order")
		}
		parts[i], last = data[from:to], to
	}
	m, err := decodeLegacy(parts[0])
	m.buffers = parts[1:]
	return m, err
}
