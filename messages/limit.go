package messages

// Limit names what a session, or a workspace, may use of a resource.
type Limit string

// The limits.
const (
	LimitMemory    Limit = "memory"
	LimitCPU       Limit = "cpu"
	LimitRuntime   Limit = "runtime"
	LimitFiles     Limit = "files"
	LimitProcesses Limit = "processes"
	LimitOutput    Limit = "output"
	LimitDisk      Limit = "disk"
)

// ResourceLimitExceeded says which limit a cell, or a kernel, has met: it ended it, unless the
// outcome of the call is ok.
type ResourceLimitExceeded struct {
	Limit Limit `json:"limit"`
	// Detail says in a clause whose limit it was, how much that is, and what was done; "": it
	// was the session's own.
	Detail string `json:"detail,omitempty"`
	// Stderr is the end of what the cell wrote to stderr, at most 2 KiB; "" when
	// it wrote nothing.
	Stderr string `json:"stderr,omitempty"`
}

// Error names the limit, with the detail.
func (e *ResourceLimitExceeded) Error() string {
	if e.Detail != "" {
		return "ResourceLimitExceeded: " + string(e.Limit) + ": " + e.Detail
	}
	return "ResourceLimitExceeded: " + string(e.Limit)
}
