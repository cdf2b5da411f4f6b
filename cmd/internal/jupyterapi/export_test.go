package jupyterapi

import (
	"encoding/json"
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

// Run sends a message on the shell channel, in the framing of the subprotocol, and returns the
// types of what comes back for it until the kernel is idle again.
func Run(t *testing.T, conn *websocket.Conn, head, metadata, content string) (kinds []string) {
	t.Helper()
	m, err := message{Channel: shell, Header: []byte(head), Parent: none, Metadata: []byte(metadata), Content: []byte(content)}.read()
	require.NoError(t, err)
	kind, data, err := m.encode(true)
	require.NoError(t, err)
	require.NoError(t, conn.WriteMessage(kind, data))
	for {
		_, data, err := conn.ReadMessage()
		require.NoError(t, err)
		got, err := decode(true, 0, data)
		require.NoError(t, err)
		parent, err := message{Header: got.Parent}.read()
		if err != nil || parent.ID != m.ID {
			continue // of no request, as what the kernel does when a client comes
		}
		kinds = append(kinds, got.Type)
		var content struct {
			State string `json:"execution_state"`
		}
		require.NoError(t, json.Unmarshal(got.Content, &content))
		if got.Type == "status" && content.State == idle {
			return kinds
		}
	}
}
