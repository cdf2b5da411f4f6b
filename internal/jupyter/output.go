package jupyter

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/coppice-run/coppice/messages"
)

// The codes of the notices that Execute emits. Each one means that output is
// missing, and the reply's Incomplete repeats it.
const (
	// NoticeRateLimited: the server drops output of this execution.
	NoticeRateLimited = "rate-limited"
	// NoticeMalformed: an output could not be read and was left out.
	NoticeMalformed = "malformed-output"
	// NoticeNotKept: outputs were dropped since the spool's disk failed.
	NoticeNotKept = "output-not-kept"
	// NoticeStray: the execution ended as if it had been interrupted, without an
	// interrupt of ours.
	NoticeStray = "stray-interrupt"
	// NoticeDropped: the kernel sent output faster than its server took it, and
	// part of it was dropped between the two.
	NoticeDropped = "output-dropped"
	// NoticeConnection: the connection to the server broke, and output is
	// missing at this place.
	NoticeConnection = "connection-lost"
	// NoticeIncomplete: the end of the output was lost on its way.
	NoticeIncomplete = "output-incomplete"
)

// gap is the content of a recordGap: where n messages are missing.
type gap struct {
	N      int64 `json:"n"`
	Exact  bool  `json:"exact"`
	After  int64 `json:"after"`
	Broken bool  `json:"broken"`
}

func (g gap) encode() []byte {
	out, err := json.Marshal(g)
	if err != nil {
		return nil // numbers always have a form
	}
	return out
}

// gapNotice says what is missing at a place.
func gapNotice(content []byte) (messages.Event, error) {
	var g gap
	if json.Unmarshal(content, &g) != nil {
		return nil, contentError("gap")
	}
	text := "output may be missing here"
	switch {
	case g.N > 0 && g.Exact:
		text = fmt.Sprintf("%d messages of the kernel are missing here", g.N)
	case g.N > 0:
		text = fmt.Sprintf("up to %d messages of the kernel are missing here", g.N)
	}
	text += fmt.Sprintf(", after output %d of the cell", g.After)
	why := "the connection to its server broke"
	switch {
	case g.Broken && g.Exact:
		why += ", and it does not remember them"
	case g.Exact:
		why = "its server dropped them, and it does not remember them"
	case g.N == 0:
		why = "the connection to the kernel's server broke"
	}
	return messages.Notice{Code: NoticeConnection, Text: text + ": " + why}, nil
}

// ReplyStatus says how an execution ended.
type ReplyStatus string

// The statuses of a reply.
const (
	ReplyOK    ReplyStatus = "ok"
	ReplyError ReplyStatus = "error"
	// ReplyAborted: the code did not run, since an error or an interrupt came
	// before it in the kernel's own queue.
	ReplyAborted ReplyStatus = "aborted"
)

// Expression is the value of one of [ExecuteRequest.UserExpressions].
type Expression struct {
	Data     messages.Bundle
	Metadata messages.RawJSON
	// Error is set when evaluating it raised; Data is nil then.
	Error *messages.ErrorDetails
}

// ExecuteReply says how an execution ended.
type ExecuteReply struct {
	// Status is "" only together with an error of Execute.
	Status ReplyStatus
	// ExecutionCount is the kernel's own count, 0 when it sent none.
	ExecutionCount int
	// Error is set with ReplyError. It says where the exception came from if the
	// last [messages.Error] among the outputs has the same name: a reply alone
	// does not. Together with [ErrNoReply] it is that last error, if there was one.
	Error *messages.ErrorDetails
	// UserExpressions has the values that were asked for.
	UserExpressions map[string]Expression
	// Exited is true when the code asked for the end of its interpreter, as
	// exit() does: the kernel is lost now.
	Exited bool
	// StdinRequested is true when the code wanted input and could ask for none, also when
	// it has caught that; only of kernels of ours.
	StdinRequested bool
	// Incomplete says why output may be missing; "" when all is there.
	Incomplete string
	// Stray is true when a KeyboardInterrupt or [ErrNoReply] ended the code
	// without an interrupt of ours: one meant for the execution before may have come
	// late.
	Stray bool
	// Broken is true when the connection to the server broke in the meantime.
	Broken bool
	// Duration runs from the first sign of the kernel to the end.
	Duration time.Duration
}
