package ndjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/coppice-run/coppice/messages"
)

// Version is the version of the protocol that this package speaks.
const Version = 1

// Limits of one line, in bytes, without its end.
const (
	// MaxRequest is the longest request that an interpreter takes.
	MaxRequest = 16 << 20
	// MaxFrame is the longest frame that the host takes.
	MaxFrame = 32 << 20
	// MaxControl is the longest request on the control descriptor.
	MaxControl = 16 << 20
	// MaxRaw is how many bytes follow a line at most.
	MaxRaw = 64 << 10
)

// The types of frames. PROTOCOL.md describes them.
const (
	TypeReady         = "ready"
	TypeFailed        = "failed"
	TypeStarted       = "started"
	TypeDropped       = "dropped"
	TypeStdout        = "stdout"
	TypeStderr        = "stderr"
	TypeDisplay       = "display"
	TypeResult        = "result"
	TypeClear         = "clear"
	TypeComm          = "comm"
	TypeError         = "error"
	TypeInputRequest  = "input_request"
	TypeHostCall      = "host_call"
	TypeHostCancel    = "host_cancel"
	TypeDone          = "done"
	TypeProtocolError = "protocol_error"
	TypePong          = "pong"
	TypeInterrupting  = "interrupting"
	TypeWarm          = "warm"
	TypeForked        = "forked"
	TypeSignalled     = "signalled"
	TypeDrained       = "drained"
	TypeExit          = "exit"
	TypeForking       = "forking"
	TypeRefused       = "refused"
	TypeFrozen        = "frozen"
	TypeThawed        = "thawed"
)

// Frame is one frame of an interpreter or of a fork server. Which fields are
// set depends on Type.
type Frame struct {
	Type string `json:"type"`
	// ID is the cell that the frame belongs to.
	ID uint64 `json:"id"`
	// Seq counts the output frames of a cell from 1.
	Seq uint64 `json:"seq"`
	// N repeats the number of the request that is answered.
	N uint64 `json:"n"`

	// stdout, stderr, dropped
	Text  string `json:"text"`
	Late  bool   `json:"late"`
	Chars int64  `json:"chars"`
	// Raw is how many bytes of text follow the line, in place of Text, and Bytes are those.
	Raw   int    `json:"raw"`
	Bytes []byte `json:"-"`

	// display, result, clear
	Data      messages.Bundle  `json:"data"`
	Metadata  messages.RawJSON `json:"metadata"`
	DisplayID string           `json:"display_id"`
	Update    bool             `json:"update"`
	Count     int              `json:"count"`
	Wait      bool             `json:"wait"`

	// comm, with Metadata
	Comm    string           `json:"comm"`
	Action  string           `json:"action"`
	Target  string           `json:"target"`
	Content messages.RawJSON `json:"content"`
	Buffers [][]byte         `json:"buffers"`

	// error, failed, refused, protocol_error
	Name      string              `json:"name"`
	Message   string              `json:"message"`
	Traceback []string            `json:"traceback"`
	Place     messages.ErrorPlace `json:"place"`

	// input_request
	Request  string `json:"request"`
	Prompt   string `json:"prompt"`
	Password bool   `json:"password"`

	// host_call, host_cancel; the name of the function is Name. frozen and thawed have
	// Args, too.
	Call uint64           `json:"call"`
	Kind string           `json:"kind"`
	Args messages.RawJSON `json:"args"`

	// done; Seconds in used, too
	OK             bool    `json:"ok"`
	Seconds        float64 `json:"seconds"`
	Interrupted    bool    `json:"interrupted"`
	StdinRequested bool    `json:"stdin_requested"`
	Limit          string  `json:"limit"`

	// ready, forked, exit
	Version int               `json:"version"`
	PID     int               `json:"pid"`
	Python  string            `json:"python"`
	Failed  map[string]string `json:"failed"`
	Code    int               `json:"code"`
	Signal  int               `json:"signal"`
	Stdout  string            `json:"stdout"`
	Stderr  string            `json:"stderr"`
}

// errNoType is why an object is not a frame.
var errNoType = errors.New("the frame has no type")

// ParseFrame reads one line, with the bytes that follow it ([Reader.Mark]). The frame keeps
// nothing of line but Bytes.
func ParseFrame(line []byte) (Frame, error) {
	line, raw, _ := bytes.Cut(line, []byte{'\n'})
	var f Frame
	if parseFast(line, &f) {
		f.Bytes = raw
		return f, nil
	}
	f, err := parseAny(line)
	f.Bytes = raw
	return f, err
}

// parseAny reads every frame. It is a function of its own so that only its
// frames are made on the heap.
func parseAny(line []byte) (Frame, error) {
	var f Frame
	if err := json.Unmarshal(line, &f); err != nil {
		return Frame{}, fmt.Errorf("read a frame: %w", err)
	}
	if f.Type == "" {
		return Frame{}, fmt.Errorf("read a frame: %w", errNoType)
	}
	return f, nil
}
