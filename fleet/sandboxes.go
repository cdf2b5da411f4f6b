package fleet

import (
	"context"
	"errors"
)

// Sandboxes gives each key a server of its own, which has that key and nothing else: the way of
// a fleet for code that may share neither a process nor a machine's kernel with that of others.
// Whoever sends work to such servers owns nothing. Any goroutine may call its methods.
//
// The claim of a key is an object that others keep: to make it is the single activation, and its
// UID the fence. It is bound to one life of a server at a time, in an epoch that grows with each.
type Sandboxes interface {
	// Claim returns the sandbox of a key, which it makes where there is none, once its server is
	// there. It waits as long as ctx lasts; a [SandboxError] says what it has waited for.
	Claim(ctx context.Context, key string) (Sandbox, error)
	// Find is Claim for a key that has a claim. The error matches [ErrNoSandbox] when it has none.
	Find(ctx context.Context, key string) (Sandbox, error)
	// Confirm looks whether the server still has the key, and returns nil when it had it at a
	// moment after Confirm was called. [ErrLost]: it has it no longer. After any other error it is
	// not known.
	Confirm(ctx context.Context, s Sandbox) error
	// Renew is for a server that does not answer, or in whose place another answers: it finds out
	// what has become of the sandbox, so that the next Claim or Find says so. An error says why
	// that is not known yet.
	Renew(ctx context.Context, s Sandbox) error
	// End ends the sandbox of a key, with all that it has. The error matches [ErrNoSandbox] when
	// there is none.
	End(ctx context.Context, key string) error
	// List returns the sandboxes that are bound, by key. What it says may be old.
	List(ctx context.Context) ([]Sandbox, error)
	// Close ends what is held in this process. Sandboxes go on. A second call does nothing.
	Close() error
}

// Sandbox is a server that has one key.
type Sandbox struct {
	// Key is what it has, Name and UID are those of the object that is the claim.
	Key, Name, UID string
	// Server is the life of the server that the claim is bound to, URL where that is reached.
	Server, URL string
	// Epoch is that of the binding. Before is the last one that is known to have been before it,
	// in which work may have been done that is lost; 0: none is.
	Epoch, Before uint64
	// Over ends when it is known that the server has the key no longer; that may be late.
	Over context.Context //nolint:containedctx // it is that of the sandbox, not of a call
}

// ErrNoSandbox says that the key has no claim.
var ErrNoSandbox = errors.New("there is no sandbox of the key")

// SandboxError says what keeps a sandbox from being there.
type SandboxError struct {
	// Name is that of the object that is the claim.
	Name string
	// Reason is a word of whoever makes sandboxes, Message what it says besides.
	Reason, Message string
	// Err is why it was not waited for any longer; nil: waiting would not help.
	Err error
}

// Error implements error.
func (e *SandboxError) Error() string {
	text := "the sandbox " + e.Name + " is not there yet: " + e.Reason
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// Unwrap returns why it was not waited for any longer.
func (e *SandboxError) Unwrap() error { return e.Err }
