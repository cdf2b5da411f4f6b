package messages

import (
	"context"
	"time"
)

// HostCalls is where the code of a running call reaches its host: with a question
// (input(), getpass) and with a call of one of the host's functions. Package
// coppice implements it; kernels call it, from any goroutine.
//
// A HostCalls never waits longer than its context: what a host's function does
// afterwards does not concern the kernel.
type HostCalls interface {
	// Ask registers a question of the running cell; from then on it can be
	// answered. The channel has room for the one answer that always comes, also
	// when ctx ends first.
	Ask(ctx context.Context, q InputRequest) <-chan InputAnswer
	// Call runs one function of the host and returns what came of it, at the
	// latest a moment after ctx has ended. say takes events of the function; it
	// must not be used after Call has returned.
	Call(ctx context.Context, c HostCall, say func(HostEvent)) HostResult
	// Pauses says that the active time of the call stands still while c runs.
	Pauses(c HostCall) bool
}

// InputAnswer is what became of a question.
type InputAnswer struct {
	// Value is the line, without its end. It counts only when Status is accepted.
	Value string `json:"value"`
	// Status is accepted or expired.
	Status InputStatus `json:"status"`
	// Idle is how long the question waited before it expired.
	Idle time.Duration `json:"idle,omitempty"`
	// Reason says why there is no answer, for the code; empty when input has ended.
	Reason string `json:"reason,omitempty"`
}

// InputStatus says what became of an answer to a question.
type InputStatus string

// What an answer can meet.
const (
	// InputAccepted: the question waited, and this is its answer.
	InputAccepted InputStatus = "accepted"
	// InputExpired: no answer came in time, or the cell that asked has ended.
	InputExpired InputStatus = "expired"
	// InputAnswered: the question has its answer already.
	InputAnswered InputStatus = "already answered"
	// InputUnknown: there was no such question, or it is long forgotten.
	InputUnknown InputStatus = "unknown"
)

// HostCallKind says which of the host's tables a call is for.
type HostCallKind string

// The kinds of host calls.
const (
	// CallTool is a function of the host: tool.name(...) in Python.
	CallTool HostCallKind = "tool"
	// CallPrimitive is a runtime primitive: runtime.name(...) in Python.
	CallPrimitive HostCallKind = "primitive"
	// CallFunctions asks which functions there are: dir(tool) and help(tool) in
	// Python. The value is a list of objects with name, signature and description.
	CallFunctions HostCallKind = "functions"
)

// HostCall is one call of a host's function by the code of a cell.
type HostCall struct {
	// ID names the call within its session.
	ID string `json:"id"`
	// Cell is the index of the cell that calls, from 0.
	Cell int          `json:"cell"`
	Kind HostCallKind `json:"kind"`
	Name string       `json:"name"`
	// Args are the arguments. Of a tool: one JSON object. Of a primitive: an
	// object with "args", a list, and "kwargs", an object.
	Args RawJSON `json:"args"`
}

// HostResult is the end of a HostCall: a value or an error.
type HostResult struct {
	// Value is any JSON value; empty means null.
	Value RawJSON `json:"value,omitempty"`
	// Error is set when the call failed.
	Error *HostError `json:"error,omitempty"`
	// NextSteps is what a primitive recommends to do with the value. It is never
	// printed.
	NextSteps []string `json:"next_steps,omitempty"`
}

// HostError is how a host call failed, as Python raises it.
type HostError struct {
	// Type is the name of a Python exception (ValueError, KeyError, …); any other
	// name is raised as HostCallError with this as its error_type.
	Type    string `json:"type"`
	Message string `json:"message"`
}

// Error returns the type and the message.
func (e *HostError) Error() string { return e.Type + ": " + e.Message }

// HostCallPhase says where a host call is in its life.
type HostCallPhase string

// The phases of a host call: each starts once and ends once.
const (
	CallStarted   HostCallPhase = "started"
	CallCompleted HostCallPhase = "completed"
	CallFailed    HostCallPhase = "error"
)

// HostCallStep reports the begin or the end of a host call of the running
// cell. Its JSON type is "host_call". Arguments and values are not part of it:
// they may be secret.
type HostCallStep struct {
	Position
	Call  string        `json:"call"`
	Kind  HostCallKind  `json:"kind"`
	Name  string        `json:"name"`
	Phase HostCallPhase `json:"phase"`
	// Error is set when Phase is error.
	Error *HostError `json:"error,omitempty"`
	// DurationMS is how long the call took, in milliseconds; 0 when it starts.
	DurationMS int64 `json:"duration_ms,omitempty"`
}

// HostEvent is something that a function of the host has to say while it
// serves the running cell: that a fork was started, for example. Its JSON type
// is "host_event".
type HostEvent struct {
	Position
	// Call is the host call that it belongs to, "" when it belongs to none.
	Call string `json:"call,omitempty"`
	// Name says what happened: "selfref_fork_spawned".
	Name string  `json:"name"`
	Data RawJSON `json:"data,omitempty"`
}

func (HostCallStep) event() {}
func (HostEvent) event()    {}

// Type returns "host_call".
func (HostCallStep) Type() string { return "host_call" }

// Type returns "host_event".
func (HostEvent) Type() string { return "host_event" }

// At returns e at position p.
func (e HostCallStep) At(p Position) Event { e.Position = p; return e }

// At returns e at position p.
func (e HostEvent) At(p Position) Event { e.Position = p; return e }

// Size returns about how many bytes e holds.
func (e HostCallStep) Size() int {
	n := eventOverhead + len(e.Name)
	if e.Error != nil {
		n += len(e.Error.Message)
	}
	return n
}

// Size returns about how many bytes e holds.
func (e HostEvent) Size() int { return eventOverhead + len(e.Name) + len(e.Data) }
