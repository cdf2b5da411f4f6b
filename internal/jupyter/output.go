package jupyter

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/coppice-run/coppice/messages"
)

// Output is one thing that an execution showed or asked for: [Stream],
// [DisplayData], [ExecuteResult], [ClearOutput], [ErrorOutput], [InputRequest]
// or [Notice]. The types follow "Messaging in Jupyter", sections iopub and
// stdin.
type Output interface{ output() }

// Stream is text that was written to stdout or stderr.
type Stream struct {
	// Name is "stdout" or "stderr".
	Name string
	Text string
}

// DisplayData is rich output, or new content for one that was shown before.
type DisplayData struct {
	Data     messages.Bundle
	Metadata messages.RawJSON
	// DisplayID names a display that may be updated later; "" when it has no
	// name.
	DisplayID string
	// Update says that this replaces the display of that name, which may be one
	// of an earlier execution.
	Update bool
}

// ExecuteResult is the value of the last expression.
type ExecuteResult struct {
	Data           messages.Bundle
	Metadata       messages.RawJSON
	DisplayID      string
	ExecutionCount int
}

// ClearOutput says that what was shown is to be removed; with Wait, when the
// next output comes.
type ClearOutput struct{ Wait bool }

// ErrorOutput is the exception that ended the code.
type ErrorOutput struct{ ExecuteError }

// InputRequest says that code waits for a line; [Kernel.Input] answers.
type InputRequest struct {
	ID       string
	Prompt   string
	Password bool
}

// The codes of a [Notice].
const (
	// NoticeRateLimited: the server drops output of this execution.
	NoticeRateLimited = "rate-limited"
	// NoticeMalformed: an output could not be read and was left out.
	NoticeMalformed = "malformed-output"
	// NoticeNotKept: outputs were dropped since the spool's disk failed.
	NoticeNotKept = "output-not-kept"
	// NoticeStray: nobody interrupted the execution, and it ended as if somebody had.
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

// Notice is a sentence of this package about the output. Each one means that
// output is missing, and the reply's Incomplete repeats it.
type Notice struct{ Code, Text string }

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
func gapNotice(content []byte) (Output, error) {
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
	return Notice{Code: NoticeConnection, Text: text + ": " + why}, nil
}

func (Stream) output()        {}
func (DisplayData) output()   {}
func (ExecuteResult) output() {}
func (ClearOutput) output()   {}
func (ErrorOutput) output()   {}
func (InputRequest) output()  {}
func (Notice) output()        {}

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

// ExecuteError is an exception as the kernel tells it.
type ExecuteError struct {
	// Name is the exception's class, Value its text.
	Name, Value string
	// Traceback holds lines with ANSI colours.
	Traceback []string
	// Place is where it came from, when the kernel tells; an execute_reply does
	// not.
	Place messages.ErrorPlace
}

// Expression is the value of one of [ExecuteRequest.UserExpressions].
type Expression struct {
	Data     messages.Bundle
	Metadata messages.RawJSON
	// Error is set when evaluating it raised; Data is nil then.
	Error *ExecuteError
}

// ExecuteReply says how an execution ended.
type ExecuteReply struct {
	// Status is "" only together with an error of Execute.
	Status ReplyStatus
	// ExecutionCount is the kernel's own count, 0 when it sent none.
	ExecutionCount int
	// Error is set with ReplyError. Together with [ErrNoReply] it is the last
	// [ErrorOutput], if there was one.
	Error *ExecuteError
	// UserExpressions has the values that were asked for.
	UserExpressions map[string]Expression
	// Exited is true when the code asked for the end of its interpreter, as
	// exit() does: the kernel is lost now.
	Exited bool
	// Incomplete says why output may be missing; "" when all is there.
	Incomplete string
	// Stray is true when a KeyboardInterrupt or [ErrNoReply] ended the code that
	// nobody asked for: an interrupt of the execution before it may have come late.
	Stray bool
	// Broken is true when the connection to the server broke in the meantime.
	Broken bool
	// Duration runs from the first sign of the kernel to the end.
	Duration time.Duration
}
