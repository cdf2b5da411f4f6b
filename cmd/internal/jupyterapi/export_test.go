package jupyterapi

import (
	"testing"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
)

// Roundtrip sends a message with buffers on the shell channel, and returns the buffers of the
// first one that comes back with any.
func Roundtrip(t *testing.T, conn *websocket.Conn, v1 bool, head, content string, buffers ...[]byte) [][]byte {
	t.Helper()
	kind, data, err := message{Channel: shell, Header: []byte(head), Parent: none, Metadata: none, Content: []byte(content), Buffers: buffers}.encode(v1)
	require.NoError(t, err)
	require.NoError(t, conn.WriteMessage(kind, data))
	for {
		kind, data, err := conn.ReadMessage()
		require.NoError(t, err)
		m, err := decode(v1, kind, data)
		require.NoError(t, err)
		if len(m.Buffers) > 0 {
			return m.Buffers
		}
	}
}
