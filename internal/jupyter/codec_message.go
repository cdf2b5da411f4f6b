package jupyter

import (
	"encoding/json"
	"time"

	"github.com/gorilla/websocket"

	"github.com/coppice-run/coppice/messages"
)

// The channels of a kernel.
const (
	chanShell   = "shell"
	chanControl = "control"
	chanIOPub   = "iopub"
	chanStdin   = "stdin"
)

// The message types that this client reads or writes.
const (
	typeExecuteRequest    = "execute_request"
	typeExecuteReply      = "execute_reply"
	typeExecuteInput      = "execute_input"
	typeExecuteResult     = "execute_result"
	typeCompleteRequest   = "complete_request"
	typeCompleteReply     = "complete_reply"
	typeInspectRequest    = "inspect_request"
	typeInspectReply      = "inspect_reply"
	typeStream            = "stream"
	typeDisplayData       = "display_data"
	typeUpdateDisplayData = "update_display_data"
	typeClearOutput       = "clear_output"
	typeError             = "error"
	typeStatus            = "status"
	typeInputRequest      = "input_request"
	typeCommOpen          = "comm_open"
	typeCommMsg           = "comm_msg"
	typeCommClose         = "comm_close"
	typeInputReply        = "input_reply"
	typeInfoRequest       = "kernel_info_request"
	typeInfoReply         = "kernel_info_reply"
	typeInterruptRequest  = "interrupt_request"
	typeInterruptReply    = "interrupt_reply"
	typeShutdownReply     = "shutdown_reply"
)

// protocolVersion is what ipykernel 6 and 7 speak.
const protocolVersion = "5.3"

// header names a message. The session of a kernel's messages names its
// process: a new one means that the state is gone.
type header struct {
	MsgID    string `json:"msg_id"`
	Session  string `json:"session"`
	Username string `json:"username"`
	Date     string `json:"date"`
	MsgType  string `json:"msg_type"`
	Version  string `json:"version"`
	// Number counts the messages about one execution, in a kernel that does
	// that; see [Kernel.EnableReplay].
	Number int64 `json:"coppice_number,omitempty"`
}

// message is one message from the server. metadata, content and buffers refer to the frame's bytes;
// frame is all of them, and kind the kind of the frame, as long as the message
// is in the hands of the reader.
type message struct {
	channel  string
	header   header
	parent   header
	metadata []byte
	content  []byte
	buffers  [][]byte
	kind     int
	frame    []byte
}

// decodeParts reads the parts of a v1 frame. The content stays as it is: most
// of it goes through the spool and is read once, at the other end.
func decodeParts(channel string, head, parent, metadata, content []byte) (message, error) {
	m := message{channel: channel, metadata: metadata, content: content}
	if json.Unmarshal(head, &m.header) != nil {
		return message{}, messageError("the header is not readable")
	}
	if len(parent) > 0 && json.Unmarshal(parent, &m.parent) != nil {
		return message{}, messageError("the parent header is not readable")
	}
	return m, m.check()
}

// decodeLegacy reads the JSON form of a message.
func decodeLegacy(data []byte) (message, error) {
	var in struct {
		Channel  string           `json:"channel"`
		Header   header           `json:"header"`
		Parent   header           `json:"parent_header"`
		Metadata messages.RawJSON `json:"metadata"`
		Content  messages.RawJSON `json:"content"`
	}
	if json.Unmarshal(data, &in) != nil {
		return message{}, frameError("the message is not readable")
	}
	m := message{channel: in.Channel, header: in.Header, parent: in.Parent, metadata: in.Metadata, content: in.Content}
	return m, m.check()
}

// check refuses what cannot be routed.
func (m *message) check() error {
	if m.header.MsgType == "" {
		return messageError("it has no type")
	}
	return nil
}

// encodeMessage builds a frame. content is one of the structs of this file.
func encodeMessage(v1 bool, channel string, h header, parent *header, content any) (frame, error) {
	h.Username = "coppice"
	h.Version = protocolVersion
	h.Date = time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
	out := frame{channel: channel, header: h, kind: websocket.TextMessage}
	if !v1 {
		data, err := json.Marshal(struct {
			Channel  string   `json:"channel"`
			Header   header   `json:"header"`
			Parent   any      `json:"parent_header"`
			Metadata struct{} `json:"metadata"`
			Content  any      `json:"content"`
			Buffers  []string `json:"buffers"`
		}{Channel: channel, Header: h, Parent: parentOrEmpty(parent), Content: content, Buffers: []string{}})
		out.data = data
		return out, err
	}
	head, err := json.Marshal(h)
	if err != nil {
		return out, err
	}
	up, err := json.Marshal(parentOrEmpty(parent))
	if err != nil {
		return out, err
	}
	body, err := json.Marshal(content)
	if err != nil {
		return out, err
	}
	out.kind = websocket.BinaryMessage
	out.data = encodeV1(channel, head, up, []byte("{}"), body)
	return out, nil
}

// parentOrEmpty returns what stands in parent_header: {} for no parent.
func parentOrEmpty(parent *header) any {
	if parent == nil {
		return struct{}{}
	}
	return parent
}

// executeContent is the content of an execute_request. All fields are sent:
// a kernel never replies to a request that misses one.
type executeContent struct {
	Code            string            `json:"code"`
	Silent          bool              `json:"silent"`
	StoreHistory    bool              `json:"store_history"`
	UserExpressions map[string]string `json:"user_expressions"`
	AllowStdin      bool              `json:"allow_stdin"`
	StopOnError     bool              `json:"stop_on_error"`
}

// inputContent is the content of an input_reply.
type inputContent struct {
	Value string `json:"value"`
}

// noContent is the content of requests that carry nothing.
type noContent struct{}
