package messages

import "time"

// ToolRun asks the launcher for one run of a tool. It travels as a work; the
// answer is a ToolResult.
type ToolRun struct {
	// ID names the run; see NewID.
	ID string
	// Tool is the id of the tool.
	Tool string
	// Fetch is a path of the tool, with its query, that is got in place of a run;
	// "": it is a run. It waits as a run does and is not counted as one.
	Fetch string
	// Inputs is a JSON object. Inputs that are missing get their defaults.
	Inputs RawJSON
	// Timeout shortens what the tool allows one run; 0 leaves that as it is.
	Timeout time.Duration
	// Out gets what the run returns while it goes on; nil: the result alone counts.
	Out ToolOutlet
}

// ToolOutlet consumes the events of one run. Emit is called from one goroutine at a
// time and may block: the tool then waits. An error says that the events are not
// wanted any more, and cancels the run. No call comes after the run's result.
type ToolOutlet interface {
	Emit(ToolEvent) error
}

// ToolEvent is a part of what a run returns, while it goes on.
type ToolEvent struct {
	// Seq counts the events of the run from 0.
	Seq int `json:"seq"`
	// Output is the key of the output that Value belongs to; "" when the tool
	// did not say and declares none that streams.
	Output string `json:"output,omitempty"`
	// Append says that Value continues what came before, not that it replaces it.
	Append bool `json:"append,omitempty"`
	// Value is what the tool sent.
	Value RawJSON `json:"value,omitempty"`
	// Done says that the output is complete.
	Done bool `json:"done,omitempty"`
}

// ToolErrorKind classifies what went wrong with a run.
type ToolErrorKind string

// The kinds of tool errors.
const (
	// ToolErrorNotFound: no tool has the id.
	ToolErrorNotFound ToolErrorKind = "not_found"
	// ToolErrorSpec: tool.json cannot be read.
	ToolErrorSpec ToolErrorKind = "spec"
	// ToolErrorVenv: the tool's virtual environment does not exist.
	ToolErrorVenv ToolErrorKind = "venv"
	// ToolErrorSecret: a secret that the tool requires is not set.
	ToolErrorSecret ToolErrorKind = "secret"
	// ToolErrorSpawn: the process did not come up.
	ToolErrorSpawn ToolErrorKind = "spawn"
	// ToolErrorInput: the inputs are not what tool.json declares, or the tool refused them.
	ToolErrorInput ToolErrorKind = "input"
	// ToolErrorTool: the tool failed.
	ToolErrorTool ToolErrorKind = "tool"
	// ToolErrorOutput: what the tool returned is not what it declares.
	ToolErrorOutput ToolErrorKind = "output"
	// ToolErrorMemory: ResourceLimitExceeded: memory.
	ToolErrorMemory ToolErrorKind = "memory"
	// ToolErrorRuntime: ResourceLimitExceeded: runtime.
	ToolErrorRuntime ToolErrorKind = "runtime"
	// ToolErrorArtifacts: ResourceLimitExceeded: artifacts.
	ToolErrorArtifacts ToolErrorKind = "artifacts"
	// ToolErrorCrashed: the process ended during the run.
	ToolErrorCrashed ToolErrorKind = "crashed"
	// ToolErrorCancelled: the run was cancelled, or the tool stopped.
	ToolErrorCancelled ToolErrorKind = "cancelled"
	// ToolErrorOverloaded: no tool could be ended to make room for this one.
	ToolErrorOverloaded ToolErrorKind = "overloaded"
	// ToolErrorDraining: the launcher is about to end.
	ToolErrorDraining ToolErrorKind = "draining"
)

// ToolError says what went wrong with a run, for people.
type ToolError struct {
	Kind ToolErrorKind `json:"kind"`
	// Message is one sentence. For a limit it begins with
	// "ResourceLimitExceeded: ".
	Message string `json:"message"`
	// Hint is what to do next, "" when there is nothing to say.
	Hint string `json:"hint,omitempty"`
	// Status is the HTTP status that the tool answered with, 0 without one.
	Status int `json:"status,omitempty"`
	// Stderr is the end of what the tool wrote to standard error, without the
	// values of its secrets.
	Stderr string `json:"stderr,omitempty"`
}

// Error is the message.
func (e *ToolError) Error() string { return e.Message }

// ToolResult is the answer to a ToolRun. Every run has exactly one.
type ToolResult struct {
	Run  string `json:"run"`
	Tool string `json:"tool"`
	// Outcome is ok, error, timeout (the run's limit), cancelled, lost (the
	// process ended) or not_started.
	Outcome Outcome `json:"outcome"`
	// Outputs is a JSON object by the keys of the tool's outputs. Of a stream
	// that ended early it has what came.
	Outputs RawJSON `json:"outputs,omitempty"`
	// Error is nil when Outcome is ok.
	Error *ToolError `json:"error"`
	// Warnings are things to mend in the tool.
	Warnings []string `json:"warnings,omitempty"`
	// Cold says that the process was started for this run.
	Cold bool `json:"cold"`
	// Hard says that the process had to be ended to end the run.
	Hard bool `json:"hard,omitempty"`
	// Artifacts is the folder with the files that the run left, "" without any;
	// Files are their names in it.
	Artifacts string   `json:"artifacts,omitempty"`
	Files     []string `json:"files,omitempty"`
	// Duration is how long the run took, the start of the process included.
	Duration time.Duration `json:"duration_ns"`
	// Fetched is the answer to ToolRun.Fetch, nil of a run.
	Fetched *ToolFetched `json:"-"`
}

// ToolFetched is what a tool answered to ToolRun.Fetch.
type ToolFetched struct {
	// ContentType is as the tool says, "" when it does not.
	ContentType string
	Data        []byte
}

// ToolCancel ends a run early: the tool is asked to cancel it, and stopped when
// the run does not end within the grace.
type ToolCancel struct {
	Tool, Run string
	// Cause is cancelled when empty.
	Cause InterruptCause
	// Limit is how long whoever asked had for the run and the wait for it, when the
	// end of that time is the cause. 0: not known.
	Limit time.Duration
}

// ToolPrewarm starts a tool ahead of its first run, if there is room. It
// travels as a work; the answer is a ToolQueued.
type ToolPrewarm struct{ Tool string }

// ToolQueued says whether a tool is being started, or is warm.
type ToolQueued struct {
	Queued bool `json:"queued"`
	// Reason says why not.
	Reason string `json:"reason,omitempty"`
}

// ToolStop ends the process of a tool; running runs are cancelled. It travels as
// a work; the answer, true when there was a process, comes when it has ended.
type ToolStop struct{ Tool string }

// ToolPin exempts a tool from making room for others, or ends that. It travels
// as a work; the answer says whether it was pinned before.
type ToolPin struct {
	Tool   string
	Pinned bool
}

// ToolsQuery asks the launcher for a ToolsState. It travels as a work.
type ToolsQuery struct{}

// ToolsState is what a launcher has at one moment.
type ToolsState struct {
	// Cap is how many tools may be warm, Warm how many are, those included that
	// start or stop.
	Cap  int `json:"cap"`
	Warm int `json:"warm"`
	// MemoryBudgetMB bounds the sum of what the warm tools may use; 0: nothing
	// does. MemoryMB is that sum now.
	MemoryBudgetMB int         `json:"memory_budget_mb,omitempty"`
	MemoryMB       int         `json:"memory_mb"`
	Tools          []ToolState `json:"tools"`
}

// ToolState is one tool that is warm, was warm, or is pinned.
type ToolState struct {
	ID string `json:"id"`
	// State is starting, idle, busy or stopping; gone when there is no process;
	// waiting when it waits for room.
	State ChildState `json:"state"`
	PID   int        `json:"pid,omitempty"`
	Port  int        `json:"port,omitempty"`
	// Started is when the process was started, LastUsed when its last run ended.
	Started  time.Time `json:"started_at,omitzero"`
	LastUsed time.Time `json:"last_used,omitzero"`
	// Expires is when the process will be ended if it is not used.
	Expires time.Time `json:"expires_at,omitzero"`
	Pinned  bool      `json:"pinned"`
	// InFlight is how many runs go on, Waiting how many wait.
	InFlight int   `json:"in_flight"`
	Waiting  int   `json:"waiting"`
	RSS      int64 `json:"rss_bytes,omitempty"`
	// Spawns and Runs count since the launcher was started.
	Spawns int `json:"spawns"`
	Runs   int `json:"runs"`
	// Drift is where the process describes itself otherwise than tool.json does.
	Drift []string `json:"drift,omitempty"`
	// Failure is the last failure of the process, nil when there was none.
	Failure *ToolFailure `json:"last_failure,omitempty"`
}

// ToolFailure is kept when the process of a tool has failed. It does not keep
// the tool from being started again.
type ToolFailure struct {
	At    time.Time `json:"at"`
	Error ToolError `json:"error"`
}
