package client

import (
	"strings"
	"time"

	"github.com/coppice-run/coppice/messages"
)

// Health is how a server is.
type Health struct {
	// Status is "ok", or "draining" when the server is about to end.
	Status  string `json:"status"`
	Version string `json:"version"`
	// Backend is gateway or runner, Why the reason that it is this one.
	Backend string `json:"backend"`
	Why     string `json:"why"`
	PID     int    `json:"pid"`
	// Cwd is the working directory of sessions that name none.
	Cwd     string    `json:"cwd"`
	Started time.Time `json:"started"`
	// Uptime is for how many seconds it has served, by a clock that is not set.
	Uptime float64 `json:"uptime_seconds"`
	// Sessions is how many have a kernel, Executions how many run or wait.
	Sessions   int `json:"sessions"`
	Executions int `json:"executions"`
	// Hibernated is how many sessions are kept on disk, or were a few seconds ago.
	Hibernated int `json:"hibernated,omitempty"`
}

// Session describes a session that has a kernel.
type Session struct {
	Session string `json:"session"`
	Cwd     string `json:"cwd"`
	// Workspace is the name of the one that it belongs to, "" for none.
	Workspace string `json:"workspace,omitempty"`
	// Kernel is the kernelspec of its kernels, "" for that of sessions that name none.
	Kernel string `json:"kernel,omitempty"`
	// State is as in [messages.Node]: idle, busy, starting, …; or [StateHibernated].
	State messages.ChildState `json:"state"`
	// Queue is how many calls wait, Done how many were answered.
	Queue  int    `json:"queue"`
	Done   uint64 `json:"done"`
	Pinned bool   `json:"pinned"`
	// Restarts counts those of the kernel, LastExit is why the one before ended.
	Restarts int            `json:"restarts"`
	LastExit *messages.Exit `json:"last_exit,omitempty"`
	Owner    string         `json:"owner,omitempty"`
	// PID, RSS (bytes) and CPU (seconds) are those of the kernel's process; 0:
	// not known.
	PID int     `json:"pid,omitempty"`
	RSS int64   `json:"rss,omitempty"`
	CPU float64 `json:"cpu_seconds,omitempty"`
	// Since is when State began, Expires when the idle session will end, or until when
	// one is kept on disk.
	Since   time.Time `json:"since"`
	Expires time.Time `json:"expires,omitzero"`
	Detail  string    `json:"detail,omitempty"`
	// Kept is what is on disk of a session that is hibernated; nil: it has a kernel.
	Kept *Hibernated `json:"hibernated,omitempty"`
	// Node is the node of a fleet that has the session, "" in none.
	Node string `json:"node,omitempty"`
}

// StateHibernated is the state of a session that has no kernel and is kept on disk: its
// next call restores it.
const StateHibernated messages.ChildState = "hibernated"

// Hibernated says what is kept on disk of a session: each of its names is kept, lost or
// changed.
type Hibernated struct {
	messages.Memory
	// Bytes is how much it is.
	Bytes int64 `json:"bytes"`
	// TookSeconds is how long it took to write it; 0: it was there already.
	TookSeconds float64 `json:"took_seconds,omitempty"`
}

// Open asks for a session.
type Open struct {
	// Session is its name, which has to be given: all who name it share its
	// variables.
	Session string `json:"session"`
	// Cwd is its working directory. "": the server's, or the folder of the workspace.
	Cwd string `json:"cwd,omitempty"`
	// Workspace is the name of the one that the session belongs to; Cwd is relative to its
	// folder then. "": none.
	Workspace string `json:"workspace,omitempty"`
	// Kernel is the kernelspec of the session's kernels: sessions of two are different. "": that of
	// sessions that name none.
	Kernel string `json:"kernel,omitempty"`
	// Pin exempts it from eviction.
	Pin   bool   `json:"pin,omitempty"`
	Owner string `json:"owner,omitempty"`
}

// Execute asks for an execution: one call in one session.
type Execute struct {
	// ID names the execution; the server runs an id once. "": Start makes one.
	ID string `json:"id,omitempty"`
	// Session, Cwd, Workspace and Kernel are as in Open.
	Session   string          `json:"session"`
	Cwd       string          `json:"cwd,omitempty"`
	Workspace string          `json:"workspace,omitempty"`
	Kernel    string          `json:"kernel,omitempty"`
	Cells     []messages.Cell `json:"cells"`
	// Timeout is in seconds. 0: the server's default; negative: none.
	Timeout    float64             `json:"timeout_seconds,omitempty"`
	Reset      bool                `json:"reset,omitempty"`
	ResetNames bool                `json:"reset_names,omitempty"`
	Mode       messages.KernelMode `json:"mode,omitempty"`
	// Env is set before the first cell, and stays; CallEnv is put back when the execution
	// has ended, see coppice.Request.
	Env     map[string]string `json:"env,omitempty"`
	CallEnv map[string]string `json:"call_env,omitempty"`
	// AllowStdin lets input() wait for Client.Answer.
	AllowStdin bool   `json:"allow_stdin,omitempty"`
	Owner      string `json:"owner,omitempty"`
}

// Kind says what an execution runs.
type Kind string

// The kinds of executions.
const (
	KindCall     Kind = "call"
	KindNotebook Kind = "notebook"
)

// ExecutionState says where an execution is in its life.
type ExecutionState string

// The states: an execution runs, waiting included, and has then ended.
const (
	Running ExecutionState = "running"
	Ended   ExecutionState = "ended"
)

// Execution describes one.
type Execution struct {
	ID        string         `json:"id"`
	Kind      Kind           `json:"kind"`
	Session   string         `json:"session"`
	Cwd       string         `json:"cwd"`
	Workspace string         `json:"workspace,omitempty"`
	Kernel    string         `json:"kernel,omitempty"`
	Owner     string         `json:"owner,omitempty"`
	State     ExecutionState `json:"state"`
	// Title is the first cell's title, or the beginning of its code; of a
	// notebook its path.
	Title string `json:"title"`
	// Cells is how many cells a call has; 0: not known, as of a notebook.
	Cells int `json:"cells,omitempty"`
	// Code is that of the cells of a call, with an empty line between two. It is there when
	// one execution is asked for.
	Code    string    `json:"code,omitempty"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended,omitzero"`
	// Events is the number of the newest event.
	Events uint64 `json:"events"`
	// Outcome is set when the execution has ended.
	Outcome messages.Outcome `json:"outcome,omitempty"`
	// Result is there when one execution that has ended is asked for.
	Result *messages.Result `json:"result,omitempty"`
	// Notebook is the report of a run of a notebook, beside Result, in the form
	// of `coppice notebook run --json`.
	Notebook messages.RawJSON `json:"notebook,omitempty"`
	// Node is the node of a fleet that has the execution, "" in none; lists say it.
	Node string `json:"node,omitempty"`
}

// Artifact describes an output that was kept.
type Artifact struct {
	ID       int       `json:"id"`
	URI      string    `json:"uri"`
	Bytes    int64     `json:"bytes"`
	Modified time.Time `json:"modified"`
}

// Show asks for the text of a notebook.
type Show struct {
	// Path is absolute, or relative to the server's working directory.
	Path string `json:"path"`
	// Lines selects: 12, 3-9, 40-, 1-20,40-. "": all.
	Lines string `json:"lines,omitempty"`
}

// Shown is the text of a notebook.
type Shown struct {
	Path  string `json:"path"`
	Text  string `json:"text"`
	Cells int    `json:"cells"`
}

// Apply makes a notebook be what an edited text says.
type Apply struct {
	Path string `json:"path"`
	Text string `json:"text"`
	// DryRun changes nothing.
	DryRun bool `json:"dry_run,omitempty"`
}

// Applied tells what an edited text did.
type Applied struct {
	// Written says that the file was changed.
	Written bool `json:"written"`
	Cells   int  `json:"cells"`
	Edited  int  `json:"edited"`
	New     int  `json:"new"`
	Deleted int  `json:"deleted"`
	// Stale is how many outputs were made by another source.
	Stale int `json:"stale"`
	// Diff shows the change.
	Diff string `json:"diff"`
}

// RunNotebook asks for the run of a notebook, which is an execution too.
type RunNotebook struct {
	ID   string `json:"id,omitempty"`
	Path string `json:"path"`
	// Session and Workspace are as in Open; Cwd "" is the folder of the notebook, or of the
	// workspace.
	Session   string `json:"session"`
	Cwd       string `json:"cwd,omitempty"`
	Workspace string `json:"workspace,omitempty"`
	// Cells selects: 3, 2-5, 7-. "": all.
	Cells string `json:"cells,omitempty"`
	// Timeout bounds each cell, in seconds. 0: none.
	Timeout     float64 `json:"timeout_seconds,omitempty"`
	AllowErrors bool    `json:"allow_errors,omitempty"`
	// Save writes what cells show into the file.
	Save  bool   `json:"save,omitempty"`
	Owner string `json:"owner,omitempty"`
}

// Change is something that happened at a server.
type Change struct {
	// Seq numbers the changes of a server from 1.
	Seq uint64    `json:"seq"`
	At  time.Time `json:"at"`
	// Type is "tree", "execution", or "missed".
	Type string `json:"type"`
	// Tree is a change in the supervision tree, for [messages.ParseLifecycle].
	Tree messages.RawJSON `json:"tree,omitempty"`
	// Execution began or ended.
	Execution *Execution `json:"execution,omitempty"`
	// Missed is how many changes the server no longer had.
	Missed uint64 `json:"missed,omitempty"`
}

// Past is a page of what happened.
type Past struct {
	// Events are the oldest first.
	Events []Change `json:"events"`
	// More says that there are others beyond, in the direction that was asked for.
	More bool `json:"more"`
	// Newest is the number of the newest event of the server, 0: there is none yet.
	Newest uint64 `json:"newest"`
	// Forgotten is the number up to which the server has no longer all events, but only
	// those that are notable: ends of interpreters, restarts, executions that failed.
	Forgotten uint64 `json:"forgotten,omitempty"`
}

// Error is an answer of the server that says no.
type Error struct {
	// Status is the HTTP status.
	Status int `json:"-"`
	// Code names the problem for programs: not_found, bad_request, overloaded, …
	Code    string `json:"code"`
	Message string `json:"message"`
	// Hint is the next step.
	Hint string `json:"hint,omitempty"`
	// Epoch is the one that a session of a fleet is in, with the codes epoch_gone and
	// epoch_needed.
	Epoch uint64 `json:"epoch,omitempty"`
}

// Error returns the problem and the next step.
func (e *Error) Error() string {
	if e.Hint == "" || strings.HasSuffix(e.Code, "_refused") || e.Code == "ended" { // the hint is a word for programs then
		return e.Message
	}
	return e.Message + "; " + e.Hint
}
