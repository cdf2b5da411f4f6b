package ndjson

import (
	"encoding/json"
	"fmt"

	"github.com/coppice-run/coppice/messages"
)

// hostResult is the form of a host_result request.
type hostResult struct {
	Type      string           `json:"type"`
	Call      uint64           `json:"call"`
	OK        bool             `json:"ok"`
	Value     messages.RawJSON `json:"value,omitempty"`
	Error     string           `json:"error,omitempty"`
	ErrorType string           `json:"error_type,omitempty"`
	NextSteps []string         `json:"next_steps,omitempty"`
}

// AppendHostResult appends the answer to the host call of that number as one
// line, with its end. A value that is not JSON, or too long for a line, becomes an
// error: the call is answered in any case.
func AppendHostResult(dst []byte, call uint64, r messages.HostResult) []byte {
	h := hostResult{Type: TypeHost, Call: call, OK: r.Error == nil, Value: r.Value, NextSteps: r.NextSteps}
	if r.Error != nil {
		h.Value, h.Error, h.ErrorType = nil, r.Error.Message, r.Error.Type
	}
	data, err := json.Marshal(h)
	if err == nil && len(data) > MaxControl {
		err = fmt.Errorf("the answer has %d bytes, and %d is the most", len(data), MaxControl)
	}
	if err != nil {
		data, _ = json.Marshal(hostResult{Type: TypeHost, Call: call, Error: err.Error(), ErrorType: "ValueError"}) // strings and numbers always have a form
	}
	return append(append(dst, data...), '\n')
}
