package jupyter_test

import (
	"testing"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/jupyter"
)

// What a message costs is paid for every line that a kernel prints. The numbers
// are what it takes now; whoever lowers one lowers it here too.
func TestAllocationsOfAMessage(t *testing.T) {
	const header = `{"msg_id":"a-1","session":"a","username":"u","date":"2026-01-01T00:00:00Z","msg_type":"stream","version":"5.3"}`
	frame := v1Frame("iopub", header, header, "{}", `{"name":"stdout","text":"a line of output\n"}`)
	require.LessOrEqual(t, testing.AllocsPerRun(200, func() {
		if _, err := jupyter.DecodeFrame(true, websocket.BinaryMessage, frame); err != nil {
			t.Fatal(err)
		}
	}), 19.0)
}
