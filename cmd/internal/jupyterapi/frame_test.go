package jupyterapi

import (
	"encoding/binary"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
)

// TestFrames come back as they went, in either framing.
func TestFrames(t *testing.T) {
	t.Parallel()
	sent := message{
		Channel: shell, Header: []byte(`{"msg_id":"1","msg_type":"a"}`), ID: "1", Type: "a", Parent: none, Metadata: none, Content: []byte(`{"x":1}`),
	}
	for n := range 4 {
		v1 := n%2 == 1
		if sent.Buffers = nil; n > 1 {
			sent.Buffers = [][]byte{[]byte("a buffer"), {}, {0, 255}}
		}
		kind, data, err := sent.encode(v1)
		require.NoError(t, err)
		got, err := decode(v1, kind, data)
		require.NoError(t, err)
		require.Equal(t, sent, got)
	}
	sent.Buffers = nil
	_, text, err := sent.encode(false)
	require.NoError(t, err)
	old := binary.BigEndian.AppendUint32(nil, 2)
	old = binary.BigEndian.AppendUint32(old, 12)
	old = binary.BigEndian.AppendUint32(old, uint32(12+len(text)))
	old = append(append(old, text...), "a buffer"...)
	got, err := decode(false, websocket.BinaryMessage, old)
	require.NoError(t, err)
	require.Equal(t, "1", got.ID)
	require.Equal(t, [][]byte{[]byte("a buffer")}, got.Buffers)
}

// FuzzDecode reads what anybody sends without coming to grief.
func FuzzDecode(f *testing.F) {
	m := message{Channel: shell, Header: []byte(`{"msg_id":"1","msg_type":"a"}`), Parent: none, Metadata: none, Content: none}
	_, data, err := m.encode(true)
	require.NoError(f, err)
	f.Add(true, websocket.BinaryMessage, data)
	f.Add(true, websocket.BinaryMessage, data[:60])
	f.Add(true, websocket.BinaryMessage, []byte("\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Add(false, websocket.BinaryMessage, []byte("\x00\x00\x00\x02\x00\x00\x00\x09\x00\x00\x00\x08"))
	f.Add(false, websocket.TextMessage, []byte(`{"header":null}`))
	f.Fuzz(func(t *testing.T, v1 bool, kind int, data []byte) {
		if m, err := decode(v1, kind, data); err == nil {
			require.NotEmpty(t, m.Type)
		}
	})
}
