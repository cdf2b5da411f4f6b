package coppice

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coppice-run/coppice/messages"
)

// MaxCheckpoints is how many checkpoints a host keeps at once.
const MaxCheckpoints = 64

// checkpointPrefix sets the names of checkpoints apart from the ids of session
// keys, which hold an @ before any slash.
const checkpointPrefix = "checkpoint/"

// Fork copies the session's interpreter n times, with everything that it has in
// memory, also what cannot be pickled, and returns the copies as sessions of their
// own: in the same working directory, named after this one. They are ordinary
// sessions from then on: they count in Options.MaxSessions, belong to owner (see
// Request.Owner; "" for none), have their own queue, and are closed like others.
// It takes a few milliseconds, and the memory in which copy and original come to
// differ.
//
// What lies outside of the process is shared: an open file has one position for
// all, a child process belongs to the original, and a temporary directory that one
// of them removes is gone for the others. Event loops are made anew.
//
// The error is a *[messages.ForkRefused], and the session is as it was, when
// something runs or waits in the session, when it has no kernel, when threads,
// asyncio tasks or a graphics processor make a copy unsafe, and on the gateway
// backend, which cannot copy. When there is no room for all copies, none is left
// and the error matches [ErrNoRoom].
func (s *Session) Fork(ctx context.Context, n int, owner string) ([]*Session, error) {
	if n <= 0 {
		return nil, &messages.ForkRefused{Reason: messages.ForkTooMany, Problem: fmt.Sprintf("%d copies cannot be made; ask for 1 or more", n)}
	}
	if o := s.host.o; n >= o.MaxSessions || o.MaxPerOwner > 0 && owner != "" && n > o.MaxPerOwner {
		return nil, &messages.ForkRefused{Reason: messages.ForkTooMany, Problem: fmt.Sprintf("%d copies would push out each other; raise Options.MaxSessions (%d) and MaxPerOwner (%d, 0 for no limit)", n, o.MaxSessions, o.MaxPerOwner)}
	}
	made := make([]*Session, n)
	names := make([]string, n)
	for i := range made {
		key := messages.SessionKey{Session: fmt.Sprintf("%s~%s", s.key.Session, messages.NewID()), Cwd: s.key.Cwd}
		made[i], names[i] = &Session{host: s.host, key: key, gatewayName: s.gatewayName}, key.ID()
	}
	if err := s.copy(ctx, names); err != nil {
		return nil, err
	}
	for i, one := range made {
		// A call without cells gives the copy its place in the tree.
		r, err := one.Execute(ctx, Request{Owner: owner})
		if err == nil && r.Outcome != messages.OutcomeOK {
			err = fmt.Errorf("%w: %s", ErrNoRoom, r.Reason)
		}
		if err != nil {
			c := context.WithoutCancel(ctx)
			for at, other := range made {
				s.host.runner.DropWaiting(names[at])
				if at <= i {
					err = errors.Join(err, other.Close(c))
				}
			}
			return nil, fmt.Errorf("fork %s: %w", s.key, err)
		}
	}
	return made, nil
}

// ErrNoRoom is matched when copies of a session got no place; the message says
// why.
var ErrNoRoom = errors.New("there is no place for a copy of the session")

// Checkpoint is a state of a session that is kept.
type Checkpoint struct {
	// Key is the session's.
	Key messages.SessionKey
	// Made is when.
	Made time.Time

	host *Host
	name string
}

// Checkpoint keeps the session's state as it is now, so that Rewind can go back
// to it, any number of times, until Drop. It is a copy of the interpreter that is
// set aside and runs nothing; what it costs is told by [Checkpoint.Memory]. A host
// keeps at most MaxCheckpoints; they end with it, and outlive their session.
//
// The error is as of Fork.
func (s *Session) Checkpoint(ctx context.Context) (*Checkpoint, error) {
	if s.host.runner != nil {
		if n := len(s.host.runner.Waiting(checkpointPrefix)); n >= MaxCheckpoints {
			return nil, &messages.ForkRefused{Reason: messages.ForkTooMany, Problem: fmt.Sprintf("the host keeps %d checkpoints, which is the most; drop one first", n)}
		}
	}
	c := &Checkpoint{Key: s.key, Made: time.Now(), host: s.host, name: checkpointPrefix + messages.NewID()}
	if err := s.copy(ctx, []string{c.name}); err != nil {
		return nil, err
	}
	return c, nil
}

// Rewind puts the session back to the state of a checkpoint; the checkpoint stays.
// What lies outside of the process, such as files, is not put back. The checkpoint
// may be another session's, with the same working directory.
//
// The error is a *[messages.ForkRefused] when something runs or waits in the
// session, or when the checkpoint was dropped or has died.
func (s *Session) Rewind(ctx context.Context, c *Checkpoint) error {
	if s.err != nil {
		return s.err
	}
	if c == nil || c.host == nil {
		return &RequestError{"checkpoint", "there is no checkpoint; take one with Session.Checkpoint"}
	}
	if c.Key.Cwd != s.key.Cwd {
		return &RequestError{"cwd", fmt.Sprintf("the checkpoint belongs to %s, and the session to %s; use a session of the same directory", c.Key.Cwd, s.key.Cwd)}
	}
	if s.host.runner == nil || c.host != s.host {
		return &messages.ForkRefused{Reason: messages.ForkUnknown, Problem: "the checkpoint belongs to another host"}
	}
	for {
		if err := s.host.runner.CopyWaiting(ctx, c.name, s.key.ID()); err != nil {
			return err
		}
		err := s.ask(ctx, messages.Rewind{Key: s.key})
		if err == nil {
			return nil
		}
		taken := !s.host.runner.DropWaiting(s.key.ID())
		if refused, ok := errors.AsType[*messages.ForkRefused](err); !ok || refused.Reason != messages.ForkStarting {
			return err
		}
		if taken {
			return nil // the kernel that was about to start is the copy
		}
		// A call without cells returns when the kernel has started.
		if r, err := s.Execute(ctx, Request{}); err != nil {
			return err
		} else if ctx.Err() != nil {
			return context.Cause(ctx)
		} else if r.Outcome != messages.OutcomeOK {
			return &messages.ForkRefused{Reason: messages.ForkNoKernel, Problem: r.Reason}
		}
	}
}

// Memory returns what the checkpoint occupies, in bytes: the memory that is its
// own by now, and all that it refers to, which is the most that it can come to
// cost. 0, 0 when it is gone, or when the system does not tell.
func (c *Checkpoint) Memory() (own, all int64) { return c.host.runner.MemoryOf(c.name) }

// Drop ends the checkpoint. A second call does nothing.
func (c *Checkpoint) Drop() { c.host.runner.DropWaiting(c.name) }

// copy has the session's kernel make copies.
func (s *Session) copy(ctx context.Context, names []string) error {
	if s.host.runner == nil {
		return &messages.ForkRefused{Reason: messages.ForkUnsupported, Problem: "the gateway backend cannot copy kernels; use the runner backend"}
	}
	return s.ask(ctx, messages.Fork{Key: s.key, Names: names})
}

// forgetCopy ends a copy that waits to become the session's kernel, because the
// session is to begin anew.
func (s *Session) forgetCopy() {
	if s.host.runner != nil {
		s.host.runner.DropWaiting(s.key.ID())
	}
}

// Forks reports whether the host's sessions are forked from a warm interpreter,
// which takes milliseconds, and if not, why: each then has an interpreter started
// for it, or is a Jupyter kernel. It waits while the fork server starts; the error
// is why it could not.
func (h *Host) Forks(ctx context.Context) (forks bool, why string, err error) {
	if h.runner == nil {
		return false, "the gateway backend starts Jupyter kernels", nil
	}
	return h.runner.Forks(ctx)
}
