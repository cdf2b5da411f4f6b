package jupyter

import (
	"encoding/json"

	"github.com/coppice-run/coppice/messages"
)

// wireComm is a message of a comm as it is spooled: its content, with what stands beside
// that on the wire.
type wireComm struct {
	Type    string           `json:"type"`
	Content messages.RawJSON `json:"content"`
	Buffers [][]byte         `json:"buffers,omitempty"`
}

// record packs a message for the spool.
func (m *message) record(kind recordKind) []byte {
	if kind != recordComm {
		return newRecord(kind, m.header.MsgID, m.content)
	}
	content, err := json.Marshal(wireComm{Type: m.header.MsgType, Content: m.content, Buffers: m.buffers})
	if err != nil {
		content = nil // the content is no JSON, which reading it tells
	}
	return newRecord(kind, m.header.MsgID, content)
}

// decodeComm reads what record has packed.
func decodeComm(content []byte) (messages.Event, error) {
	var out wireComm
	var in struct {
		ID     string           `json:"comm_id"`
		Target string           `json:"target_name"`
		Data   messages.RawJSON `json:"data"`
	}
	if json.Unmarshal(content, &out) != nil || json.Unmarshal(out.Content, &in) != nil || in.ID == "" {
		return nil, contentError("comm")
	}
	action := messages.CommUpdate
	switch out.Type {
	case typeCommOpen:
		action = messages.CommOpen
	case typeCommClose:
		action = messages.CommClose
	}
	return messages.Comm{ID: in.ID, Action: action, Target: in.Target, Data: in.Data, Buffers: out.Buffers}, nil
}
