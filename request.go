package coppice

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
	"unicode/utf8"

	"github.com/coppice-run/coppice/messages"
)

// Request is one call.
type Request struct {
	// Cells are run in order. The first one that does not complete ends the
	// call.
	Cells []messages.Cell
	// Timeout bounds the call: waiting for earlier calls and running, not the
	// start of a kernel. 0: none.
	Timeout time.Duration
	// Reset asks for a new kernel before the first cell.
	Reset bool
	// Mode overrides Options.KernelMode.
	Mode messages.KernelMode
	// Env is set in os.environ before the first cell, and stays.
	Env map[string]string
	// AllowStdin lets input() wait for Session.SubmitInput.
	AllowStdin bool
	// Count numbers the cells as a notebook does, and keeps them in In and Out.
	// It has a price on the gateway backend: one history file for all kernels.
	Count bool
	// Owner is the agent or tenant that makes the call. The session belongs to
	// all owners of its calls, see Host.ReleaseOwner; the first one's capacity
	// is charged, see Options.MaxPerOwner.
	Owner string
}

// RequestError says that a request could not be made. Nothing was run.
type RequestError struct {
	// Field is what is wrong: "timeout", "cwd", "cells", "mode".
	Field string
	// Problem names it and the next step.
	Problem string
}

// Error returns the problem.
func (e *RequestError) Error() string { return e.Problem }

// check refuses what no kernel should see.
func (r Request) check() error {
	if r.Timeout < 0 {
		return &RequestError{"timeout", fmt.Sprintf("the timeout %v is negative; use 0 for none", r.Timeout)}
	}
	switch r.Mode {
	case "", messages.ModeSession, messages.ModePerCall:
	default:
		return &RequestError{"mode", fmt.Sprintf("the kernel mode %q is not one of session, per-call", r.Mode)}
	}
	for i, c := range r.Cells {
		if !utf8.ValidString(c.Code) {
			return &RequestError{"cells", fmt.Sprintf("cell %d is not valid UTF-8; Python source must be text", i+1)}
		}
	}
	for k := range r.Env {
		if k == "" || !utf8.ValidString(k) || !utf8.ValidString(r.Env[k]) {
			return &RequestError{"env", fmt.Sprintf("the environment variable %q is not text", k)}
		}
	}
	return nil
}

// cleanCwd makes a session's working directory absolute and refuses one that
// is not there.
func cleanCwd(cwd string) (string, error) {
	abs, err := filepath.Abs(cwd) // "" is the directory of the process
	if err != nil {
		return "", &RequestError{"cwd", fmt.Sprintf("working directory %q: %v", cwd, err)}
	}
	info, err := os.Stat(abs)
	switch {
	case os.IsNotExist(err):
		return "", &RequestError{"cwd", "Working directory does not exist: " + abs}
	case err != nil:
		return "", &RequestError{"cwd", fmt.Sprintf("Working directory cannot be used: %v", err)}
	case !info.IsDir():
		return "", &RequestError{"cwd", "Working directory is not a directory: " + abs}
	}
	return abs, nil
}
