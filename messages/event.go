package messages

import (
	"fmt"
	"strconv"
)

// Event is something that happened while a call ran. The types in this file
// are all there are.
type Event interface {
	// Pos returns where the event stands in its call.
	Pos() Position
	// At returns the event with its position replaced; the receiver does not
	// change.
	At(Position) Event
	// Type returns the name of the event's type in JSON.
	Type() string
	// Size returns about how many bytes the event holds, for flow control.
	Size() int
	event()
}

// Position is where an event stands in its call.
type Position struct {
	// Seq counts the events of a call from 1, without a gap.
	Seq uint64 `json:"seq"`
	// Cell is the index of the cell, from 0; -1 for the call itself.
	Cell int `json:"cell"`
}

// Pos returns p; the event types embed it.
func (p Position) Pos() Position { return p }

// CellStatus is where a cell is in its life.
type CellStatus string

// The cell states, as doc.go draws them.
const (
	CellPending  CellStatus = "pending"
	CellRunning  CellStatus = "running"
	CellComplete CellStatus = "complete"
	CellError    CellStatus = "error"
)

// StreamName is stdout or stderr.
type StreamName string

// The streams.
const (
	StdoutStream StreamName = "stdout"
	StderrStream StreamName = "stderr"
)

// Status reports a cell's step (Status is set) or carries a status event that
// code in the cell sent (Data is set): an object with an "op" member.
type Status struct {
	Position
	Status CellStatus `json:"status,omitempty"`
	Data   RawJSON    `json:"data,omitempty"`
}

// Stream is text that was written to stdout or stderr. Its JSON type is
// "stdout" or "stderr".
type Stream struct {
	Position
	Name StreamName `json:"-"`
	Text string     `json:"text"`
}

// Display is rich output: display(), a figure, an update of either. Data holds
// the kernel's bundle unchanged.
type Display struct {
	Position
	Data     Bundle  `json:"data"`
	Metadata RawJSON `json:"metadata,omitempty"`
	// DisplayID names a display that may be updated later.
	DisplayID string `json:"display_id,omitempty"`
	// Update says that this replaces the display of that name.
	Update bool `json:"update,omitempty"`
}

// ExecuteResult is the value of a cell's last expression. Its JSON type is
// "result".
type ExecuteResult struct {
	Position
	Data           Bundle  `json:"data"`
	Metadata       RawJSON `json:"metadata,omitempty"`
	ExecutionCount int     `json:"execution_count,omitempty"`
	// DisplayID names a value that a [Display] may update later.
	DisplayID string `json:"display_id,omitempty"`
}

// ClearOutput says that what the cell showed so far is to be removed; with
// Wait, when the next output comes.
type ClearOutput struct {
	Position
	Wait bool `json:"wait,omitempty"`
}

// Error is an exception that ended a cell.
type Error struct {
	Position
	ErrorDetails
}

// ErrorDetails describes an exception and where the user's code raised it.
type ErrorDetails struct {
	// Name is the exception's class, Message its text.
	Name    string `json:"name"`
	Message string `json:"message"`
	// Traceback holds the lines that the kernel sent, with their colours.
	Traceback []string `json:"traceback,omitempty"`
	ErrorPlace
}

// ExitStatus is what Python would have ended with, had it been a script: of SystemExit
// the number in it, and 0 without one; 1 of all else, and where e is nil.
func (e *ErrorDetails) ExitStatus() int {
	switch {
	case e == nil || e.Name != "SystemExit":
		return 1
	case e.Message == "" || e.Message == "None":
		return 0
	}
	status, err := strconv.Atoi(e.Message)
	if err != nil {
		return 1
	}
	return status & 0xff
}

// ErrorPlace says where in the user's code an exception came from. Its members
// stand beside those of [ErrorDetails] in JSON. What is not known is zero, as
// in a kernel that is not IPython's.
//
// The place is the innermost line of a cell, also when it belongs to a function
// of an earlier cell; what failed further inside, in a library, is folded. Of a
// SyntaxError it is where the compiler pointed. Lines and columns count from 1,
// columns in characters; the end column is the first one after what failed.
type ErrorPlace struct {
	// Filename is the cell's name: <cell N>, where N counts what the kernel ran.
	Filename  string `json:"filename,omitempty"`
	Line      int    `json:"line,omitempty"`
	Column    int    `json:"column,omitempty"` // Python 3.11 and newer; of a SyntaxError always
	EndLine   int    `json:"end_line,omitempty"`
	EndColumn int    `json:"end_column,omitempty"`
	// Snippet is the line of code, Pointer a line of carets to show under it.
	Snippet string `json:"snippet,omitempty"`
	Pointer string `json:"pointer,omitempty"`
	// Summary is what to read first: the exception, its place, snippet and
	// pointer, the members of a group, the causes, the hint.
	Summary string `json:"summary,omitempty"`
	// UserTraceback is the traceback with the frames of libraries folded.
	UserTraceback string `json:"user_traceback,omitempty"`
	// Hint is a sentence about what to do, if there is something to say.
	Hint string `json:"hint,omitempty"`
}

// InputRequest says that code waits for a line of input. ID names the question
// for Session.SubmitInput of package coppice.
type InputRequest struct {
	Position
	ID       string `json:"id"`
	Prompt   string `json:"prompt"`
	Password bool   `json:"password,omitempty"`
	// IdleTimeoutMS is how long the question waits for its answer, in
	// milliseconds.
	IdleTimeoutMS int64 `json:"idle_timeout_ms,omitempty"`
}

// Notice is a sentence of the runtime itself to whoever reads the output.
type Notice struct {
	Position
	// Code names the kind of notice for programs, e.g. "state-lost".
	Code string `json:"code,omitempty"`
	Text string `json:"text"`
}

// LateOutput is the code of the notices around what was printed between the cells.
const LateOutput = "late-output"

// LateBegins is the notice before the text that background code of earlier cells
// printed since the last one. dropped is how many characters before it are lost.
func LateBegins(dropped int64) Notice {
	n := Notice{Code: LateOutput, Text: "[late output] Background code of earlier cells printed this between the cells:"}
	if dropped > 0 {
		n.Text += fmt.Sprintf(" (the first %d characters were not kept)", dropped)
	}
	return n
}

// LateEnds is the notice after that text: what follows is of the cell itself.
func LateEnds() Notice { return Notice{Code: LateOutput, Text: "[end of late output]"} }

// Final carries the result of the call; it is the last event of a stream that
// a host reads. Kernels never emit it.
type Final struct {
	Position
	Result Result `json:"result"`
}

func (Status) event()        {}
func (Stream) event()        {}
func (Display) event()       {}
func (ExecuteResult) event() {}
func (ClearOutput) event()   {}
func (Error) event()         {}
func (InputRequest) event()  {}
func (Notice) event()        {}
func (Final) event()         {}

// Type returns "status".
func (Status) Type() string { return "status" }

// Type returns "stdout" or "stderr".
func (e Stream) Type() string { return string(e.Name) }

// Type returns "display".
func (Display) Type() string { return "display" }

// Type returns "result".
func (ExecuteResult) Type() string { return "result" }

// Type returns "clear".
func (ClearOutput) Type() string { return "clear" }

// Type returns "error".
func (Error) Type() string { return "error" }

// Type returns "input_request".
func (InputRequest) Type() string { return "input_request" }

// Type returns "notice".
func (Notice) Type() string { return "notice" }

// Type returns "final".
func (Final) Type() string { return "final" }

// At returns e at position p.
func (e Status) At(p Position) Event { e.Position = p; return e }

// At returns e at position p.
func (e Stream) At(p Position) Event { e.Position = p; return e }

// At returns e at position p.
func (e Display) At(p Position) Event { e.Position = p; return e }

// At returns e at position p.
func (e ExecuteResult) At(p Position) Event { e.Position = p; return e }

// At returns e at position p.
func (e ClearOutput) At(p Position) Event { e.Position = p; return e }

// At returns e at position p.
func (e Error) At(p Position) Event { e.Position = p; return e }

// At returns e at position p.
func (e InputRequest) At(p Position) Event { e.Position = p; return e }

// At returns e at position p.
func (e Notice) At(p Position) Event { e.Position = p; return e }

// At returns e at position p.
func (e Final) At(p Position) Event { e.Position = p; return e }

// eventOverhead is what an event costs beside its text, roughly.
const eventOverhead = 64

// Size returns about how many bytes e holds.
func (e Status) Size() int { return eventOverhead + len(e.Data) }

// Size returns about how many bytes e holds.
func (e Stream) Size() int { return eventOverhead + len(e.Text) }

// Size returns about how many bytes e holds.
func (e Display) Size() int { return eventOverhead + e.Data.Size() + len(e.Metadata) }

// Size returns about how many bytes e holds.
func (e ExecuteResult) Size() int { return eventOverhead + e.Data.Size() + len(e.Metadata) }

// Size returns about how many bytes e holds.
func (e ClearOutput) Size() int { return eventOverhead }

// Size returns about how many bytes e holds.
func (e Error) Size() int {
	n := eventOverhead + len(e.Name) + len(e.Message) + len(e.Summary) + len(e.UserTraceback)
	for _, l := range e.Traceback {
		n += len(l)
	}
	return n
}

// Size returns about how many bytes e holds.
func (e InputRequest) Size() int { return eventOverhead + len(e.Prompt) }

// Size returns about how many bytes e holds.
func (e Notice) Size() int { return eventOverhead + len(e.Text) }

// Size returns about how many bytes e holds.
func (e Final) Size() int { return eventOverhead + len(e.Result.Text) }
