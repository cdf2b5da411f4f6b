package messages

import (
	"context"
	"time"
)

// KernelMode says how long the kernel of a call lives.
type KernelMode string

// The kernel modes.
const (
	// ModeSession keeps the kernel for later calls with the same key. It is
	// what the zero value means.
	ModeSession KernelMode = "session"
	// ModePerCall makes a kernel for this call alone and always ends it.
	ModePerCall KernelMode = "per-call"
)

// Cell is one piece of code to execute.
type Cell struct {
	// Title is shown to people and models; it may be empty.
	Title string `json:"title,omitempty"`
	// Code is Python source. Empty code is legal and completes at once.
	Code string `json:"code"`
}

// Execute asks for one call: its cells run in order in one kernel, and the
// first one that does not complete ends the call.
type Execute struct {
	// ID names the call in events, logs and artifacts. [NewID] makes one.
	ID string `json:"id"`
	// Key names the session.
	Key SessionKey `json:"key"`
	// Owner is an optional label of who pays for the session's capacity.
	Owner string `json:"owner,omitempty"`
	// Cells are run in order. No cells is legal: the call completes without
	// output.
	Cells []Cell `json:"cells"`
	// Timeout bounds the whole call, waiting and start included; 0 means none.
	Timeout time.Duration `json:"timeout,omitempty"`
	// Deadline is the instant that Timeout stands for, fixed when the call was
	// made, so that time spent in a queue counts. Zero means none.
	Deadline time.Time `json:"deadline,omitzero"`
	// Made is when the call was made, for how long it waited. Zero: not known.
	Made time.Time `json:"made,omitzero"`
	// Reset asks for a new kernel before the first cell.
	Reset bool `json:"reset,omitempty"`
	// Mode is session unless it says otherwise.
	Mode KernelMode `json:"mode,omitempty"`
	// Env is set in os.environ before the first cell, on top of what the
	// kernel started with. It stays set.
	Env map[string]string `json:"env,omitempty"`
	// CallEnv is set in os.environ while the cells run, and put back after each.
	CallEnv map[string]string `json:"call_env,omitempty"`
	// AllowStdin lets input() wait for an answer; without it a read from stdin fails
	// the cell, and the result says so.
	AllowStdin bool `json:"allow_stdin,omitempty"`
	// Count asks the interpreter to number the cells and to keep them in its
	// history (In, Out), as a notebook does. A Jupyter kernel writes them to the
	// user's history file then, which all kernels share: not for many calls.
	Count bool `json:"count,omitempty"`
	// Comms asks for the messages of widgets and the like, see [Comm].
	Comms bool `json:"comms,omitempty"`

	// InputTimeout is how long each question waits for its answer. 0: 5 min.
	InputTimeout time.Duration `json:"input_timeout,omitempty"`
	// ResetNames asks, before the first cell, for the end of what earlier calls
	// have defined, in the same kernel: variables go, and the working directory,
	// the environment and replaced builtins are as they were at its start.
	ResetNames bool `json:"reset_names,omitempty"`

	// Tokens has the text show at most so many tokens from the beginning of the
	// output, with a reminder of what is missing. 0: what the host shows.
	Tokens int `json:"tokens,omitempty"`

	// Introspect is set when the call asks about names instead of running code of
	// the user. Its one cell holds Python code that finds the answer, for kernels
	// that have no request of their own for it.
	Introspect *Introspect `json:"-"`

	// Resumed says that an earlier host has begun the call, in an interpreter that has
	// outlived it and knows how far it came.
	Resumed bool `json:"-"`

	// Out takes the call's events. It is never nil inside the tree.
	Out Outlet `json:"-"`
	// HostCalls serves the questions and the host calls of the code; nil when it can
	// make none.
	HostCalls HostCalls `json:"-"`
}

// Introspect asks what could stand at a place in some code, or what the name there
// stands for. The answer is one display of application/json: {"matches": [...],
// "start": N} or {"text": "..."}.
type Introspect struct {
	Kind IntrospectKind
	Code string
	// Cursor is the place in Code, and start in the answer where the word begins,
	// both in code points.
	Cursor int
}

// IntrospectKind is what is asked.
type IntrospectKind string

// The kinds.
const (
	// IntrospectComplete asks for completions of the word at the cursor.
	IntrospectComplete IntrospectKind = "complete"
	// IntrospectInspect asks for the signature and the document of the name at the
	// cursor.
	IntrospectInspect IntrospectKind = "inspect"
)

// Outlet is where the output of one call leaves its kernel.
// Package sinks implements it; kernels call it.
//
// Emit and Flush are called from one goroutine at a time, in the order of
// events.
type Outlet interface {
	// Emit hands over one event. It blocks while a lossless sink has no
	// credit left, so that output which is not taken holds its producer back instead of
	// filling memory; it gives up when ctx ends, with ctx's cause.
	// The event's number is given here.
	Emit(ctx context.Context, e Event) error
	// Flush waits until every sink of the call has handled what was emitted
	// before, and returns what the result sink kept. It gives up when ctx
	// ends; the Output then says Lost.
	Flush(ctx context.Context) Output
}

// Hurrier is an Outlet that can go on without the sinks that are slow. After
// Hurry, output for which such a sink has no credit is left out for it, with a
// notice in its place, and Flush does not wait for it. The result sink still gets
// everything. Any goroutine may call Hurry.
type Hurrier interface{ Hurry() }

// Output is what the result sink kept of a call: the output half of a
// [Result]. The kernel adds the half that only it knows.
type Output struct {
	// Cells has one entry per cell that emitted anything, by cell index.
	Cells []CellOutput `json:"cells"`
	// JSON holds the application/json displays of the call, in order.
	JSON []RawJSON `json:"json,omitempty"`
	// Images holds the images of the call, in order.
	Images []Image `json:"images,omitempty"`
	// Truncation is set when the text does not hold all that was printed.
	Truncation *Truncation `json:"truncation,omitempty"`
	// Artifact is artifact://N when the full output was kept in a file.
	Artifact string `json:"artifact,omitempty"`
	// NotKept says why the full output is not in a file, or not all of it; it is for
	// people.
	NotKept string `json:"not_kept,omitempty"`
	// Lost says that the sink failed or was cut off: the output is not whole.
	Lost string `json:"lost,omitempty"`
}

// CellOutput is what one cell showed.
type CellOutput struct {
	// Index is the cell's place in the call, from 0.
	Index int `json:"index"`
	// Text is stdout, stderr, displays and tracebacks in the order in which
	// they came, made fit for a model.
	Text string `json:"text"`
	// Events are the status events that the cell's code sent.
	Events []RawJSON `json:"events,omitempty"`
	// HasMarkdown says that a text/markdown display is part of Text.
	HasMarkdown bool `json:"has_markdown,omitempty"`
}

// Interrupt asks for the end of what runs for Key: of the call Exec, or of
// whatever runs when Exec is empty. The session is kept.
type Interrupt struct {
	Key  SessionKey `json:"key"`
	Exec string     `json:"exec,omitempty"`
	// Cause says who asked; it decides the outcome of the call.
	Cause InterruptCause `json:"cause"`
	// Deadline is how long the caller had, when the cause is the deadline of the
	// caller's context, in nanoseconds. 0: it is not, but the timeout of the call.
	Deadline time.Duration `json:"deadline,omitempty"`
	// Active says that the active time of the call is up. Time that it spent
	// waiting for its host is not active: the kernel adds it, and interrupts
	// later.
	Active bool `json:"active,omitempty"`
}

// InterruptCause says why a call is interrupted.
type InterruptCause string

// Stop is what the interrupt means for a call with that timeout, and the time that has
// passed, 0 for none.
func (i Interrupt) Stop(timeout time.Duration) (Stop, time.Duration) {
	switch {
	case i.Cause != CauseTimeout:
		return StopCancel, 0
	case i.Deadline > 0:
		return StopDeadline, i.Deadline
	default:
		return StopTimeout, timeout
	}
}

// The causes.
const (
	CauseCancelled InterruptCause = "cancelled"
	CauseTimeout   InterruptCause = "timeout"
	// CauseLimit: a limit was met that is not one of time; the result names it.
	CauseLimit InterruptCause = "limit"
)

// Reset asks for a new kernel for Key; variables are gone afterwards. Calls
// that wait in the queue run on the new kernel.
type Reset struct {
	Key SessionKey `json:"key"`
}

// Close ends the kernel of Key and forgets the session.
type Close struct {
	Key SessionKey `json:"key"`
}

// EndWorkspace ends the kernels of all sessions of a workspace and forgets them: running
// calls are cancelled for the reason, waiting ones are not started. It is answered when
// the kernels are gone. What comes later for the workspace is served again.
type EndWorkspace struct {
	Workspace string `json:"workspace"`
	// Reason is a sentence for results.
	Reason string `json:"reason"`
}

// Pin exempts the session of Key from eviction, or ends the exemption.
type Pin struct {
	Key    SessionKey `json:"key"`
	Pinned bool       `json:"pinned"`
}

// Drain asks for the end of all work: no new calls, waiting ones are not
// started, running ones end by themselves. It is answered when none runs.
type Drain struct{}

// ReleaseOwner says that Owner has left: sessions that no other owner uses are
// closed. It is answered with [Released].
type ReleaseOwner struct {
	Owner string `json:"owner"`
}

// Released are the sessions that were closed because their owner has left.
type Released struct {
	Sessions []SessionKey `json:"sessions"`
}
