package runner

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/coppice-run/coppice/internal/ipctrace"
)

// Directions of traced messages.
const (
	sent     = "sent"
	received = "received"
)

// trace notes one line, without what it says. Any goroutine may call it.
func (i *Interpreter) trace(direction, channel string, line []byte) {
	if i.tracer == nil {
		return
	}
	var head struct {
		Type string `json:"type"`
		ID   uint64 `json:"id"`
		N    uint64 `json:"n"`
	}
	line = bytes.TrimPrefix(line, i.mark)
	if json.Unmarshal(line, &head) != nil {
		head.Type = "?"
	}
	r := ipctrace.Record{Backend: Name, Kernel: strconv.Itoa(i.child.PID()), Direction: direction, Channel: channel, Type: head.Type, Bytes: len(line)}
	switch {
	case head.ID != 0:
		r.ID = strconv.FormatUint(head.ID, 10)
	case head.N != 0:
		r.ID = strconv.FormatUint(head.N, 10)
	}
	i.tracer.Write(r)
}
