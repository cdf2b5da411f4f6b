package messages

import "time"

// Outcome says how a call, or one cell of it, ended.
type Outcome string

// The outcomes.
const (
	// OutcomeOK: the code ran to its end.
	OutcomeOK Outcome = "ok"
	// OutcomeError: the user's code raised.
	OutcomeError Outcome = "error"
	// OutcomeTimeout: the call's deadline passed while it waited or ran.
	OutcomeTimeout Outcome = "timeout"
	// OutcomeCancelled: the caller left, or interrupted it.
	OutcomeCancelled Outcome = "cancelled"
	// OutcomeLost: the kernel died while the cell ran.
	OutcomeLost Outcome = "lost"
	// OutcomeNotStarted: the code never reached a kernel.
	OutcomeNotStarted Outcome = "not_started"
)

// State says what became of the session's variables.
type State string

// The states.
const (
	// StateKept: the kernel that served the call had served the session
	// before, and it lives.
	StateKept State = "kept"
	// StateFresh: a new kernel served the call; nothing of earlier calls was
	// there.
	StateFresh State = "fresh"
	// StateRestored: a new kernel served the call, with what of earlier calls was kept
	// on disk: Result.Restored has the list. What is not among its kept is not there, or
	// not as it was.
	StateRestored State = "restored"
	// StateLost: the kernel is gone, and with it all variables.
	StateLost State = "lost"
)

// BusyNotice begins the notice of a call that the machine delayed by more than a second.
const BusyNotice = "the machine was busy: "

// Result is the end of a call. Every [Execute] gets exactly one.
type Result struct {
	Outcome Outcome `json:"outcome"`
	// State is what became of the session's variables; empty when nothing of the call
	// ran, which says nothing of them.
	State State `json:"state"`
	// Restored says what of the variables is there, when State is restored.
	Restored *Restored `json:"restored,omitempty"`
	// Refusal says why nothing ran, when Outcome is not_started.
	Refusal Refusal `json:"refusal,omitempty"`
	// Remedy is what can be done about a call of which nothing ran, in a word for
	// programs; Reason has it for people. "" when nothing helps, and of a call that ran.
	Remedy Remedy `json:"remedy,omitempty"`
	// RetryAfterMS is after how many milliseconds the same call is worth making again; 0:
	// at once, or not before the Remedy.
	RetryAfterMS int64 `json:"retry_after_ms,omitempty"`
	// Progress says how far the call came, which limit ended it and what it waited for.
	// Use [Result.HowFar].
	Progress Progress `json:"progress,omitzero"`
	// Text is what a model reads: all cells' output, what failed, what was
	// cut, and what became of the state, in the forms that sinks documents.
	Text string `json:"text"`
	// Backend is "gateway" or "runner"; empty when no backend was reached.
	Backend string `json:"backend"`
	Session string `json:"session"`
	Cwd     string `json:"cwd"`
	// Cells has an entry for every cell of the call, in order.
	Cells []CellResult `json:"cells"`
	// JSON holds the application/json displays of all cells, in order.
	JSON []RawJSON `json:"json"`
	// Images holds the pictures of all cells, in order.
	Images []Image `json:"images"`
	// Truncation is set when Text does not hold all output.
	Truncation *Truncation `json:"truncation"`
	// Artifact is artifact://N when the full output was kept.
	Artifact *string `json:"artifact"`
	// NotKept says that the full output was not kept, or only a part of it, and why;
	// empty when Artifact has all of it or nothing was to be kept.
	NotKept string `json:"not_kept,omitempty"`
	// StdinRequested says that code asked for input and got none.
	StdinRequested bool `json:"stdin_requested"`
	// Reason says why, when Outcome is lost or not_started, or why State is
	// not kept; empty when there is nothing to explain.
	Reason string `json:"reason,omitempty"`
	// Notices say what the host could not do for the call, a sentence each: that a
	// conversation which its code compacted was not saved, or that the code had no
	// processor for more than a second, and a tenth of its time.
	// One that begins with [BusyNotice] is for those who run the host, and not in Text.
	Notices []string `json:"notices,omitempty"`
	// Exceeded is set when a resource limit of the session, or of its workspace, ended the
	// code, something that it had started, or the kernel; also when nothing ran, because the
	// kernel was ended for one as it started, or again right after a restart. With
	// OutcomeOK the code has met one that stopped nothing of it, such as a full workspace.
	Exceeded *ResourceLimitExceeded `json:"resource_limit_exceeded,omitempty"`
	// Exec is the call's id.
	Exec string `json:"exec,omitempty"`
	// Duration is how long the call took, waiting included.
	Duration time.Duration `json:"-"`
}

// CellResult is the end of one cell.
type CellResult struct {
	// Index is the cell's place in the call, from 0.
	Index  int        `json:"index"`
	Title  string     `json:"title"`
	Status CellStatus `json:"status"`
	// Outcome is not_started for a cell that stayed pending.
	Outcome Outcome `json:"outcome"`
	// Output is the cell's text, without empty lines around it.
	Output string `json:"output"`
	// DurationMS is how long the cell ran, in milliseconds.
	DurationMS int64 `json:"duration_ms"`
	// ExitCode is 0 or 1 for a cell that ran to its end, else null.
	ExitCode *int `json:"exit_code"`
	// Error is set when the cell raised.
	Error *ErrorDetails `json:"error"`
	// ExecutionCount is the number that the interpreter gave to the execution,
	// 0 when it gave none.
	ExecutionCount int `json:"execution_count,omitempty"`
	// Events are the status events that the cell's code sent.
	Events []RawJSON `json:"events"`
	// HasMarkdown says that Output holds a text/markdown display.
	HasMarkdown bool `json:"has_markdown,omitempty"`
}

// Truncation says which part of the output is shown. Lines are counted from 1.
type Truncation struct {
	// Direction is "tail" (the end is shown), "head", or "middle" (both ends
	// are shown).
	Direction string `json:"direction"`
	// TruncatedBy is "bytes", "lines" or "tokens".
	TruncatedBy string `json:"truncated_by"`
	TotalLines  int64  `json:"total_lines"`
	TotalBytes  int64  `json:"total_bytes"`
	OutputLines int64  `json:"output_lines"`
	OutputBytes int64  `json:"output_bytes"`
	MaxBytes    int64  `json:"max_bytes,omitempty"`
	// ShownStart and ShownEnd are the first and last line shown; with direction
	// middle, of the part after the gap.
	ShownStart int64 `json:"shown_start,omitempty"`
	ShownEnd   int64 `json:"shown_end,omitempty"`
	// TotalTokens and MaxTokens are set when a limit of tokens cut the text: about
	// how many the whole output has, and how many are shown.
	TotalTokens int64 `json:"total_tokens,omitempty"`
	MaxTokens   int64 `json:"max_tokens,omitempty"`
	// Artifact is artifact://N when the whole, or what Result.NotKept says of it, can
	// be read there.
	Artifact string `json:"artifact,omitempty"`
	// Path is the file of the artifact, with a limit of tokens.
	Path string `json:"path,omitempty"`
}
