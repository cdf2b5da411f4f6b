package jupyter_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/jupyter"
)

// v1Frame lays out parts by the book, independent of the code under test.
func v1Frame(parts ...string) []byte {
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(parts)+1))
	at := uint64(8 * (len(parts) + 2))
	for _, p := range parts {
		out = binary.LittleEndian.AppendUint64(out, at)
		at += uint64(len(p))
	}
	out = binary.LittleEndian.AppendUint64(out, at)
	return append(out, strings.Join(parts, "")...)
}

// legacyBinaryFrame lays out the older binary form by the book.
func legacyBinaryFrame(parts ...string) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(len(parts)))
	at := uint32(4 * (len(parts) + 1))
	for _, p := range parts {
		out = binary.BigEndian.AppendUint32(out, at)
		at += uint32(len(p))
	}
	return append(out, strings.Join(parts, "")...)
}

const (
	head   = `{"msg_id":"m","msg_type":"stream","session":"s","username":"u","date":null,"version":"5.3"}`
	parent = `{"msg_id":"p"}`
	legacy = `{"channel":"iopub","header":` + head + `,"parent_header":` + parent + `,"metadata":{},"content":{"a":1},"buffers":[]}`
)

var decoded = jupyter.Message{Channel: "iopub", ID: "m", Type: "stream", Session: "s", Parent: "p", Content: `{"a":1}`}

func TestDecodeFrame(t *testing.T) {
	t.Parallel()
	orphan := decoded
	orphan.Parent = ""
	buffers, legacyBuffers := decoded, decoded
	buffers.Buffers, legacyBuffers.Buffers = "buf||more|", "buf|more|"
	for name, tc := range map[string]struct {
		v1   bool
		kind int
		data []byte
		want jupyter.Message
	}{
		"v1":                        {true, websocket.BinaryMessage, v1Frame("iopub", head, parent, "{}", `{"a":1}`), decoded},
		"v1 with buffers":           {true, websocket.BinaryMessage, v1Frame("iopub", head, parent, "{}", `{"a":1}`, "buf", "", "more"), buffers},
		"v1 without parent":         {true, websocket.BinaryMessage, v1Frame("iopub", head, "{}", "{}", `{"a":1}`), orphan},
		"v1 with null parent":       {true, websocket.BinaryMessage, v1Frame("iopub", head, "null", "{}", `{"a":1}`), orphan},
		"v1 with no parent at all":  {true, websocket.BinaryMessage, v1Frame("iopub", head, "", "", `{"a":1}`), orphan},
		"legacy text":               {false, websocket.TextMessage, []byte(legacy), decoded},
		"legacy binary":             {false, websocket.BinaryMessage, legacyBinaryFrame(legacy), decoded},
		"legacy binary and buffers": {false, websocket.BinaryMessage, legacyBinaryFrame(legacy, "buf", "more"), legacyBuffers},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := jupyter.DecodeFrame(tc.v1, tc.kind, tc.data)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(tc.want, got))
		})
	}
}

func TestDecodeFrameRefuses(t *testing.T) {
	t.Parallel()
	backwards := v1Frame("iopub", head, parent, "{}", `{"a":1}`)
	binary.LittleEndian.PutUint64(backwards[8*3:], 1)
	beyond := v1Frame("iopub", head, parent, "{}", `{"a":1}`)
	binary.LittleEndian.PutUint64(beyond[8*6:], uint64(len(beyond)+1))
	binBeyond := legacyBinaryFrame(legacy, "buf")
	binary.BigEndian.PutUint32(binBeyond[8:], 1<<31)
	for name, tc := range map[string]struct {
		v1   bool
		kind int
		data []byte
		what string
	}{
		"text in v1":            {true, websocket.TextMessage, []byte(legacy), "frame"},
		"nothing":               {true, websocket.BinaryMessage, nil, "frame"},
		"too few offsets":       {true, websocket.BinaryMessage, v1Frame("iopub", head, parent, "{}"), "frame"},
		"offset backwards":      {true, websocket.BinaryMessage, backwards, "frame"},
		"offset beyond the end": {true, websocket.BinaryMessage, beyond, "frame"},
		"absurd count":          {true, websocket.BinaryMessage, bytes.Repeat([]byte{0xff}, 64), "frame"},
		"offsets cut off":       {true, websocket.BinaryMessage, binary.LittleEndian.AppendUint64(nil, 6), "frame"},
		"header no JSON":        {true, websocket.BinaryMessage, v1Frame("iopub", "x", parent, "{}", "{}"), "message"},
		"header no object":      {true, websocket.BinaryMessage, v1Frame("iopub", "[]", parent, "{}", "{}"), "message"},
		"no type":               {true, websocket.BinaryMessage, v1Frame("iopub", "{}", parent, "{}", "{}"), "message"},
		"parent no object":      {true, websocket.BinaryMessage, v1Frame("iopub", head, "7", "{}", "{}"), "message"},
		"legacy no JSON":        {false, websocket.TextMessage, []byte("{"), "frame"},
		"legacy no type":        {false, websocket.TextMessage, []byte("{}"), "message"},
		"binary nothing":        {false, websocket.BinaryMessage, []byte{0, 0, 0}, "frame"},
		"binary no parts":       {false, websocket.BinaryMessage, make([]byte, 8), "frame"},
		"binary absurd count":   {false, websocket.BinaryMessage, bytes.Repeat([]byte{0xff}, 64), "frame"},
		"binary offset beyond":  {false, websocket.BinaryMessage, binBeyond, "frame"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := jupyter.DecodeFrame(tc.v1, tc.kind, tc.data)
			require.ErrorContains(t, err, "malformed "+tc.what)
		})
	}
}

// What is sent can be read back, in both framings.
func TestFrameRoundTrip(t *testing.T) {
	t.Parallel()
	for _, v1 := range []bool{true, false} {
		kind, data, err := jupyter.EncodeFrame(v1, decoded, json.RawMessage(`{"a":1}`))
		require.NoError(t, err)
		got, err := jupyter.DecodeFrame(v1, kind, data)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(decoded, got))
		if v1 {
			require.Equal(t, websocket.BinaryMessage, kind)
			require.EqualValues(t, 6, binary.LittleEndian.Uint64(data))
		} else {
			require.Equal(t, websocket.TextMessage, kind)
			require.True(t, json.Valid(data))
		}
	}
}

func FuzzDecodeFrame(f *testing.F) {
	for _, v1 := range []bool{true, false} {
		f.Add(v1, true, v1Frame("iopub", head, parent, "{}", `{"a":1}`, "buf"))
		f.Add(v1, true, legacyBinaryFrame(legacy, "buf"))
		f.Add(v1, false, []byte(legacy))
		f.Add(v1, true, []byte{})
	}
	f.Fuzz(func(t *testing.T, v1, isBinary bool, data []byte) {
		kind := websocket.TextMessage
		if isBinary {
			kind = websocket.BinaryMessage
		}
		m, err := jupyter.DecodeFrame(v1, kind, data)
		if err == nil && m.Type == "" {
			t.Fatal("a message without a type")
		}
		if err == nil && len(m.Content) > len(data) {
			t.Fatal("content from nowhere")
		}
	})
}

func FuzzDecodeContent(f *testing.F) {
	for _, s := range []string{
		`{}`, `null`, `{"name":"stdout","text":"a"}`, `{"data":{"text/plain":"1"},"metadata":{},"transient":{"display_id":"x"}}`,
		`{"ename":"E","evalue":"v","traceback":["a"]}`, `{"prompt":"p","password":true}`, `{"wait":true}`, `{"execution_state":"idle"}`,
		`{"status":"ok","execution_count":1,"payload":[{"source":"ask_exit"},{"source":"page","data":{"text/plain":"x"}}],"user_expressions":{"a":{"status":"error","ename":"x"}}}`,
		`{"protocol_version":"5.3","language_info":{"name":"python"}}`, `{"kernelspecs":{"a":{"spec":{"argv":["x"]}}}}`, `{"id":"x"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(_ *testing.T, content []byte) { jupyter.DecodeContent(content) })
}

func FuzzRecord(f *testing.F) {
	f.Add(byte(1), "id", []byte("content"))
	f.Add(byte(0), strings.Repeat("x", 300), []byte{})
	f.Fuzz(func(t *testing.T, kind byte, id string, content []byte) {
		k, i, c, err := jupyter.RecordRoundTrip(kind, id, content)
		if err != nil || k != kind || !strings.HasPrefix(id, i) || len(i) != min(len(id), 255) || !bytes.Equal(c, content) {
			t.Fatalf("%v: %d %q %q", err, k, i, c)
		}
		_ = jupyter.SplitRecord(content)
	})
}
