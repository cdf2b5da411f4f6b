package client

import (
	"context"
	"net/http"
)

// WorkspaceProof is what came of code that tried to get out of a workspace.
type WorkspaceProof struct {
	// Isolation is the rung that its sessions are on, and Network whether they may use it.
	Isolation string `json:"isolation"`
	Network   bool   `json:"network,omitempty"`
	// Holds says that nothing was allowed that the rung is said to prevent.
	Holds    bool               `json:"holds"`
	Attempts []WorkspaceAttempt `json:"attempts"`
}

// AttemptState is what became of an attempt.
type AttemptState string

// The states of attempts.
const (
	// AttemptRefused failed.
	AttemptRefused AttemptState = "refused"
	// AttemptDocumented did not fail, as is said of the rung.
	AttemptDocumented AttemptState = "documented"
	// AttemptAllowed did not fail, though it is said of the rung that it does: a reason not to
	// trust the isolation on that machine.
	AttemptAllowed AttemptState = "allowed"
)

// OwnKernel is the Why of an attempt that did not fail on the rung gvisor, where there is
// nothing to be had by it.
const OwnKernel = "it is done to the kernel of the sandbox, which is its own, and reaches nothing else"

// WorkspaceAttempt is one attempt.
type WorkspaceAttempt struct {
	// Attempt says what was tried: "write a file outside".
	Attempt string       `json:"attempt"`
	State   AttemptState `json:"state"`
	// From is the lowest rung that prevents it there: "off" where the system itself does, ""
	// where none does.
	From string `json:"from,omitempty"`
	// Why says of an attempt that no rung prevents, or a rung only there, what that means.
	Why string `json:"why,omitempty"`
	// Detail is what the code saw: an exception, or what it got.
	Detail string `json:"detail"`
}

// ProveWorkspace has code in a new session of a workspace try to get out of its isolation,
// which takes about a second, and returns what came of each attempt, in the order of
// environment.Walls. The session ends with it; like any new one it may need the place of one
// that is idle. An error with code bad_request says that the code could not run there.
func (c *Client) ProveWorkspace(ctx context.Context, name string) (WorkspaceProof, error) {
	var p WorkspaceProof
	err := c.askWorkspace(ctx, true, http.MethodPost, name, "/prove", nil, nil, &p)
	return p, err
}
