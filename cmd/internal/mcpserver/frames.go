package mcpserver

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxFrame bounds one line of the input, in bytes.
const maxFrame = mcp.DefaultMaxLineLength

// The codes of JSON-RPC.
const (
	codeNoJSON    = -32700
	codeNoRequest = -32600
)

// requests is the input, whose end comes after the answers. The transport ends with the
// first line that it cannot read, and the sessions of all calls with it; so such a line
// is answered here, and the next one is read: one that is too long, that is no JSON or
// no message.
type requests struct {
	in   io.ReadCloser
	open *pending
	// refuse writes an answer to the client.
	refuse func(line []byte)
	// most bounds a line, in bytes.
	most int

	// What follows is the reading goroutine's own.
	buffered *bufio.Reader
	ready    []byte // what of the lines that were let through is not read yet
	ended    error  // what the input ended with
}

// Read reads the lines that are let through.
func (r *requests) Read(p []byte) (int, error) {
	if r.buffered == nil {
		r.buffered = bufio.NewReaderSize(r.in, 64<<10)
	}
	for len(r.ready) == 0 {
		if r.ended != nil {
			if errors.Is(r.ended, io.EOF) {
				r.open.wait()
			}
			return 0, r.ended
		}
		r.line()
	}
	n := copy(p, r.ready)
	if r.ready = r.ready[n:]; len(r.ready) == 0 {
		r.ready = nil // it may have been large
	}
	return n, nil
}

// line reads one line and lets it through, or answers it.
func (r *requests) line() {
	var line []byte
	var skipped *envelope // set when the line is too long
	for {
		piece, err := r.buffered.ReadSlice('\n')
		switch {
		case skipped != nil:
			skipped.feed(piece)
		case len(line)+len(piece) > r.most:
			skipped = &envelope{}
			skipped.feed(line)
			skipped.feed(piece)
			line = nil
		default:
			line = append(line, piece...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		r.ended = err
		break
	}
	if skipped != nil {
		r.tooLong(skipped)
		return
	}
	if line = bytes.TrimSpace(line); len(line) > 0 {
		r.admit(line)
	}
}

// admit lets a line through, or answers it. A batch, which the transport ends with, is
// let through message by message.
func (r *requests) admit(line []byte) {
	if !json.Valid(line) {
		r.no(nil, codeNoJSON, "a line of the input is no JSON")
		return
	}
	if line[0] == '[' {
		var batch []json.RawMessage
		if json.Unmarshal(line, &batch) == nil && len(batch) > 0 {
			for _, one := range batch {
				r.message(one)
			}
			return
		}
	}
	r.message(line)
}

// message lets one message through, or answers it.
func (r *requests) message(text []byte) {
	var m message
	_ = json.Unmarshal(text, &m) // what it is not is found by the next line
	if _, err := jsonrpc.DecodeMessage(text); err != nil {
		if m.Method != "" || !m.named() { // an answer gets none
			r.no(m.ID, codeNoRequest, "a line of the input is no message: "+err.Error())
		}
		return
	}
	switch {
	case m.named() && m.Method != "":
		if !r.open.begin(string(m.ID)) {
			r.no(m.ID, codeNoRequest, "a request with the id "+string(m.ID)+" has no answer yet; give each request an id of its own")
			return
		}
	case m.Method == "notifications/cancelled": // it gets no answer
		r.open.end(string(m.Params.RequestID))
	}
	var flat bytes.Buffer
	if bytes.IndexByte(text, '\n') >= 0 && json.Compact(&flat, text) == nil { // a part of a batch
		text = flat.Bytes()
	}
	r.ready = append(append(r.ready, text...), '\n')
}

// tooLong answers a line that was passed over: a request with an error to the client,
// the answer to a request of ours with an error to that. A notification gets none.
func (r *requests) tooLong(e *envelope) {
	text := fmt.Sprintf("the message is longer than %d bytes; put large data into a file", r.most)
	switch id := e.id(); {
	case id == nil && e.request:
	case id == nil || e.request:
		r.no(id, codeNoRequest, text)
	default:
		r.ready = append(append(r.ready, failure(id, codeNoRequest, text)...), '\n')
	}
}

// no answers a message with an error.
func (r *requests) no(id json.RawMessage, code int, text string) {
	r.refuse(append(failure(id, code, text), '\n'))
}

// failure is the answer of JSON-RPC to the request id, nil when that is not known.
func failure(id json.RawMessage, code int, text string) []byte {
	if _, err := jsonrpc.DecodeMessage([]byte(`{"jsonrpc":"2.0","method":"x","id":` + string(id) + `}`)); err != nil {
		id = nil // it is no id
	}
	data, _ := json.Marshal(map[string]any{ // holds nothing that could fail
		"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": text},
	})
	return data
}

// Close closes the input.
func (r *requests) Close() error { return r.in.Close() }

// maxID bounds the members of a message that is passed over, in bytes: more is no id.
const maxID = 1 << 10

// envelope finds the id of a message that comes in pieces and is kept nowhere, and
// whether it has a method.
type envelope struct {
	depth   int
	text    bool // in a string
	escaped bool // behind a backslash in it
	value   bool // behind the colon of a member of the message
	token   []byte
	name    string
	found   []byte
	request bool
}

// id is what was found, nil for none.
func (e *envelope) id() json.RawMessage {
	if !json.Valid(e.found) || string(e.found) == "null" {
		return nil
	}
	return e.found
}

func (e *envelope) feed(piece []byte) {
	for _, c := range piece {
		e.byte(c)
	}
}

func (e *envelope) byte(c byte) {
	if e.text {
		e.keep(c)
		switch {
		case e.escaped:
			e.escaped = false
		case c == '\\':
			e.escaped = true
		case c == '"':
			e.text = false
		}
		return
	}
	switch c {
	case '"':
		e.text = true
		e.keep(c)
	case '{', '[':
		e.depth++
	case '}', ']':
		if e.depth == 1 {
			e.member()
		}
		e.depth--
	case ':':
		if e.depth == 1 {
			e.name, e.value, e.token = string(e.token), true, nil
		}
	case ',':
		if e.depth == 1 {
			e.member()
		}
	case ' ', '\t', '\r', '\n':
	default:
		e.keep(c)
	}
}

// keep remembers a byte of a name or a plain value of the message itself.
func (e *envelope) keep(c byte) {
	if e.depth == 1 && len(e.token) < maxID {
		e.token = append(e.token, c)
	}
}

// member is the end of a member of the message.
func (e *envelope) member() {
	if e.value {
		switch e.name {
		case `"id"`:
			e.found = e.token
		case `"method"`:
			e.request = true
		}
	}
	e.name, e.value, e.token = "", false, nil
}
