package jupyter

import (
	"bytes"
	"encoding/json"

	"github.com/coppice-run/coppice/messages"
)

// wireComm is a message of a comm as it is spooled: its content, with what stands beside
// that on the wire.
type wireComm struct {
	Type     string           `json:"type"`
	Content  messages.RawJSON `json:"content"`
	Metadata messages.RawJSON `json:"metadata,omitempty"`
	Buffers  [][]byte         `json:"buffers,omitempty"`
}

// record packs a message for the spool.
func (m *message) record(kind recordKind) []byte {
	if kind != recordComm {
		return newRecord(kind, m.header.Number, m.header.MsgID, m.content)
	}
	out := wireComm{Type: m.header.MsgType, Content: m.content, Buffers: m.buffers}
	if len(m.metadata) > 0 && string(m.metadata) != "{}" {
		out.Metadata = m.metadata
	}
	if m.parent.MsgID != "" { // the request is ours, and means nothing to who gets this
		out.Content = bytes.ReplaceAll(m.content, quote(m.parent.MsgID), quote(messages.CommRequest))
	}
	content, err := json.Marshal(out)
	if err != nil {
		content = nil // the content is no JSON, which reading it tells
	}
	return newRecord(kind, m.header.Number, m.header.MsgID, content)
}

// quote is an ID as a string of JSON: it has nothing that is written otherwise there.
func quote(id string) []byte { return []byte(`"` + id + `"`) }

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
	return messages.Comm{ID: in.ID, Action: action, Target: in.Target, Data: in.Data, Metadata: out.Metadata, Buffers: out.Buffers}, nil
}
