package messages

// Limit names what a session may use of a resource.
type Limit string

// The limits.
const (
	LimitMemory    Limit = "memory"
	LimitCPU       Limit = "cpu"
	LimitRuntime   Limit = "runtime"
	LimitFiles     Limit = "files"
	LimitProcesses Limit = "processes"
)

// ResourceLimitExceeded says which limit ended a cell.
type ResourceLimitExceeded struct {
	Limit Limit `json:"limit"`
	// Stderr is the end of what the cell wrote to stderr, at most 2 KiB; "" when
	// it wrote nothing.
	Stderr string `json:"stderr,omitempty"`
}

// Error names the limit.
func (e *ResourceLimitExceeded) Error() string { return "ResourceLimitExceeded: " + string(e.Limit) }
