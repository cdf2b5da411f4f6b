package jupyter

import (
	"errors"
	"fmt"
	"net/http"
)

// What a caller may want to decide on, for [errors.Is].
var (
	// ErrUnauthorized: the server wants a token, or another one.
	ErrUnauthorized = errors.New("requires authentication. Set PI_PYTHON_GATEWAY_TOKEN.") //nolint:staticcheck,revive // shown to people as it is
	// ErrNotFound: the server does not know the kernel.
	ErrNotFound = errors.New("not found")
	// ErrKernelLimit: the server runs as many kernels as it is allowed to.
	ErrKernelLimit = errors.New("the server's kernel limit is reached")
	// ErrKernelUser: the server accepts the token, but starts no kernel for the
	// user that the request named, or did not name.
	ErrKernelUser = errors.New("the server starts no kernels for this user. Set KERNEL_USERNAME.") //nolint:staticcheck,revive // shown to people as it is
	// ErrBadID: the server gave a new kernel an id that none can have.
	ErrBadID = errors.New("the server gave a new kernel an id that cannot be used")
	// ErrShared: the server gave a kernel to a session that another one uses.
	// Nothing was run in it.
	ErrShared = errors.New("the server gave a session the kernel of another one; use another server, or have this one looked at")
	// ErrEnough is what emit returns to [Kernel.Execute] when it wants no more
	// output. It is never returned.
	ErrEnough = errors.New("no more output is wanted")
	// ErrBusy: an execution runs in this kernel, or one that was abandoned has
	// not ended.
	ErrBusy = errors.New("the kernel is executing")
	// ErrNoReply: an execution has ended, and its reply will never come. How it
	// ended is not known, except by the outputs.
	ErrNoReply = errors.New("the kernel never sent its reply")
	// ErrTooLong: a request is longer than servers take. Nothing was sent.
	ErrTooLong = errors.New("the request is too long")
	// ErrNoInput: no code waits for input.
	ErrNoInput = errors.New("no input was asked for")
)

// StatusError is an answer of the server that is not a success. It carries
// nothing of what the server wrote: Kernel Gateway sends tracebacks with paths.
type StatusError struct {
	// Method and Path name the request, without host and query.
	Method, Path string
	// Code is the HTTP status.
	Code int
	// Message is our own sentence part for Code.
	Message string

	kind error
}

// newStatusError describes the answer code to a request. refusal is what the
// body said of a 403 that is not about the token, nil for nothing.
func newStatusError(method, path string, code int, refusal error) *StatusError {
	e := &StatusError{Method: method, Path: path, Code: code}
	switch {
	case code == http.StatusForbidden && refusal != nil:
		e.kind = refusal
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		e.kind = ErrUnauthorized
	case code == http.StatusNotFound:
		e.kind = ErrNotFound
	case code >= 300 && code < 400:
		e.Message = "the server redirects elsewhere"
	case code == http.StatusTooManyRequests:
		e.Message = "the server is asked too often"
	case code >= 500:
		e.Message = "the server failed"
	default:
		e.Message = "the server refused"
	}
	if e.kind != nil {
		e.Message = e.kind.Error()
	}
	return e
}

// Error names the request, the status and what it means.
func (e *StatusError) Error() string {
	return fmt.Sprintf("%s %s: status %d: %s", e.Method, e.Path, e.Code, e.Message)
}

// Is makes errors.Is(err, ErrUnauthorized) and its like work.
func (e *StatusError) Is(target error) bool { return e.kind != nil && target == e.kind }

// UnreachableError says that there was no answer from the server.
type UnreachableError struct {
	// Method and Path name the request, without host and query.
	Method, Path string
	// Timeout is true when time ran out; otherwise the connection failed.
	Timeout bool
	// Sent is false when it is certain that the server did not see the request.
	Sent bool
	Err  error
}

// Error names the request and what happened to it.
func (e *UnreachableError) Error() string {
	if e.Timeout {
		return fmt.Sprintf("%s %s: the server is not reachable (timeout)", e.Method, e.Path)
	}
	return fmt.Sprintf("%s %s: the server is not reachable: %v", e.Method, e.Path, e.Err)
}

// Unwrap returns what the network said.
func (e *UnreachableError) Unwrap() error { return e.Err }

// LostError says that a kernel died, was replaced, or cannot be heard any more.
type LostError struct {
	// Reason is a sentence part for people: "the kernel process died".
	Reason string
	// Replaced is true when a new, empty kernel answers under the same id: code
	// may have run in it.
	Replaced bool
	Err      error
}

// Error returns "kernel lost: " and the reason.
func (e *LostError) Error() string {
	if e.Err != nil {
		return "kernel lost: " + e.Reason + ": " + e.Err.Error()
	}
	return "kernel lost: " + e.Reason
}

// Unwrap returns what was observed.
func (e *LostError) Unwrap() error { return e.Err }

// SilentError says that a kernel did not answer a ping in time, while nothing
// proves that it is gone: it may be held up in one long call of C code.
type SilentError struct {
	// State is what the server says of the kernel ("busy", "idle"), "" when the
	// server could not be asked.
	State string
	// Away is true when the connection broke in the meantime: it may have swallowed the
	// answer, however often, or is being dialled again.
	Away bool
	Err  error
}

// Error says that there was no answer, and what the server believes.
func (e *SilentError) Error() string {
	if e.State == "" {
		return fmt.Sprintf("the kernel does not answer, nor does its server: %v", e.Err)
	}
	return fmt.Sprintf("the kernel does not answer; its server says %q: %v", e.State, e.Err)
}

// Unwrap returns why the wait ended.
func (e *SilentError) Unwrap() error { return e.Err }
