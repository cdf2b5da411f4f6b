package coppice

import (
	"errors"
)

// ErrOptions is matched by every error about Options.
var ErrOptions = errors.New("invalid options")

// ErrClosed is returned by everything that needs a host that has been shut
// down.
var ErrClosed = errors.New("the host is shut down")

// ErrNoPython is matched by the error of [Host.CheckPython].
var ErrNoPython = errors.New("python is not available")

// ErrNoRoom is matched when copies of a session got no place; the message says
// why.
var ErrNoRoom = errors.New("there is no place for a copy of the session")

// RequestError says that a request could not be made. Nothing was run.
type RequestError struct {
	// Field is what is wrong: "timeout", "cwd", "cells", "mode", "env", "ctx", ...
	Field string
	// Problem names it and the next step.
	Problem string
}

// Error returns the problem.
func (e *RequestError) Error() string { return e.Problem }

// errNoContext is what nil in the place of a context gets.
var errNoContext error = &RequestError{"ctx", "the context is nil; pass context.Background() for a call that nothing ends"}
