package coppice

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/messages"
)

// MaxCheckpoints is how many checkpoints a host keeps at once.
const MaxCheckpoints = 64

// checkpointPrefix sets the names of checkpoints apart from the ids of session
// keys, which hold an @ before any slash.
const checkpointPrefix = "checkpoint/"

// Fork copies the session's interpreter with everything that it has in memory, including what
// cannot be pickled, and returns the copies as sessions of their own in the same working
// directory. From then on they are ordinary sessions: they count in Options.MaxSessions, have
// their own queue, and are closed like others. Forking takes a few milliseconds, and only the
// memory in which copy and original come to differ.
//
// What is outside the process is shared: an open file has one position for all, a child process
// belongs to the original, and a temporary directory that one of them removes is gone for the
// others. Event loops are made again.
//
// The error is a [*messages.ForkRefused], and the session is as it was, if something runs or
// waits in the session, if it has no kernel, if threads, asyncio tasks or a graphics processor
// make a copy unsafe, and on the gateway backend, which cannot copy. If there is no room for all
// copies, none is made, and the error matches [ErrNoRoom].
func (s *Session) Fork(ctx context.Context, o ForkOptions) ([]*Session, error) {
	made, err := s.copies(o)
	if err != nil {
		return nil, err
	}
	if o.Names != nil {
		if err := s.host.unused(ctx, made); err != nil {
			return nil, err
		}
	}
	names := make([]string, len(made))
	for i, one := range made {
		names[i] = one.key.ID()
	}
	if err := s.copy(ctx, names); err != nil {
		return nil, err
	}
	for i, one := range made {
		// A call without cells gives the copy its place in the tree.
		r, err := one.execute(ctx, Request{Owner: o.Owner})
		if err == nil && r.Outcome != messages.OutcomeOK {
			err = fmt.Errorf("%w: %w", ErrNoRoom, r.Err())
		}
		if err != nil {
			c := context.WithoutCancel(ctx)
			for at, other := range made {
				dropWaiting(s.backend(), names[at])
				if at <= i {
					err = errors.Join(err, other.Close(c))
				}
			}
			return nil, fmt.Errorf("fork %s: %w", s.key, err)
		}
	}
	return made, nil
}

// ForkOptions say what copies a session gets. The zero value of each field is its
// default.
type ForkOptions struct {
	// Copies is how many copies are made. 0: as many as Names, else one.
	Copies int
	// Names are the names of the copies, which must not be those of live sessions in
	// the same working directory. nil: the session's own name, ~ and an id for each.
	Names []string
	// Owner is the agent or tenant to whom the copies belong, see Request.Owner. "":
	// to none.
	Owner string
}

// copies are the sessions that the copies become; none has a kernel yet.
func (s *Session) copies(o ForkOptions) ([]*Session, error) {
	n := o.Copies
	if n == 0 {
		n = max(len(o.Names), 1)
	}
	refuse := func(problem string, args ...any) ([]*Session, error) {
		return nil, &messages.ForkRefused{Reason: messages.ForkTooMany, Problem: fmt.Sprintf(problem, args...)}
	}
	host := s.host.o
	switch {
	case n < 0:
		return refuse("%d copies cannot be made; ask for 1 or more", n)
	case o.Names != nil && len(o.Names) != n:
		return nil, &RequestError{"names", fmt.Sprintf("there are %d names for %d copies; name each of them, or none", len(o.Names), n)}
	case n >= host.MaxSessions || host.MaxPerOwner > 0 && o.Owner != "" && n > host.MaxPerOwner:
		return refuse("there is no room for %d copies at once: Options.MaxSessions (--max-sessions) is %d, and MaxPerOwner is %d (0: no limit)", n, host.MaxSessions, host.MaxPerOwner)
	}
	made := make([]*Session, n)
	seen := map[string]bool{s.key.Session: true}
	for i := range made {
		name := fmt.Sprintf("%s~%s", s.key.Session, messages.NewID())
		if o.Names != nil {
			name = o.Names[i]
		}
		if seen[name] {
			return nil, &RequestError{"names", fmt.Sprintf("the name %q is taken; give each copy one of its own", name)}
		}
		seen[name] = true
		made[i] = &Session{host: s.host, key: messages.SessionKey{Session: name, Cwd: s.key.Cwd, Workspace: s.key.Workspace, Kernel: s.key.Kernel}, ws: s.ws}
	}
	return made, nil
}

// unused refuses sessions that have a kernel already: its state would stay.
func (h *Host) unused(ctx context.Context, made []*Session) error {
	live, err := h.Sessions(ctx)
	if err != nil {
		return err
	}
	for _, one := range made {
		if slices.ContainsFunc(live, func(l SessionInfo) bool { return l.Key == one.key }) {
			return &RequestError{"names", fmt.Sprintf("there is a session %s already; close it, or choose another name for the copy", one.key)}
		}
	}
	return nil
}

// Checkpoint is a state of a session that is kept.
type Checkpoint struct {
	// Key is the session's.
	Key messages.SessionKey
	// Made is when.
	Made time.Time

	host    *Host
	backend kernel.Backend
	name    string
}

// Checkpoint keeps the session's state as it is now, so that Rewind can go back
// to it, any number of times, until Drop. It is a copy of the interpreter that is
// set aside and runs nothing; [Checkpoint.Memory] says what it costs. A host
// keeps at most MaxCheckpoints; they end with it, and outlive their session.
//
// The error is as of Fork.
func (s *Session) Checkpoint(ctx context.Context) (*Checkpoint, error) {
	if b, ok := s.backend().(kernel.Forker); ok {
		if n := len(b.Waiting(checkpointPrefix)); n >= MaxCheckpoints {
			return nil, &messages.ForkRefused{Reason: messages.ForkTooMany, Problem: fmt.Sprintf("the host keeps %d checkpoints, which is the most; drop one first", n)}
		}
	}
	c := &Checkpoint{Key: s.key, Made: time.Now(), host: s.host, backend: s.backend(), name: checkpointPrefix + messages.NewID()}
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
	forker, ok := s.backend().(kernel.Forker)
	if !ok || c.host != s.host || c.backend != s.backend() {
		return &messages.ForkRefused{Reason: messages.ForkUnknown, Problem: "the checkpoint belongs to another host, or to a workspace with a fork server of its own"}
	}
	for {
		if err := forker.CopyWaiting(ctx, c.name, s.key.ID()); err != nil {
			return err
		}
		err := s.ask(ctx, messages.Rewind{Key: s.key})
		if err == nil {
			return nil
		}
		taken := !forker.DropWaiting(s.key.ID())
		if refused, ok := errors.AsType[*messages.ForkRefused](err); !ok || refused.Reason != messages.ForkStarting {
			return err
		}
		if taken {
			return nil // the kernel that was about to start is the copy
		}
		// A call without cells returns when the kernel has started.
		if r, err := s.execute(ctx, Request{}); err != nil {
			return err
		} else if ctx.Err() != nil {
			return context.Cause(ctx)
		} else if r.Outcome != messages.OutcomeOK {
			return &messages.ForkRefused{Reason: messages.ForkNoKernel, Problem: r.Reason}
		}
	}
}

// Memory returns what the checkpoint occupies, in bytes: the memory that is its own so far, and
// all that it refers to, which is the most it can come to cost. 0, 0 if it is gone, or if the
// system does not tell.
func (c *Checkpoint) Memory() (own, all int64) {
	if b, ok := c.backend.(kernel.Forker); ok {
		return b.MemoryOf(c.name)
	}
	return 0, 0
}

// Drop ends the checkpoint. A second call does nothing.
func (c *Checkpoint) Drop() { dropWaiting(c.backend, c.name) }

// copy has the session's kernel make copies.
func (s *Session) copy(ctx context.Context, names []string) error {
	if _, ok := s.backend().(kernel.Forker); !ok {
		return &messages.ForkRefused{Reason: messages.ForkUnsupported, Problem: s.host.cannot("cannot copy kernels; use the runner backend")}
	}
	return s.ask(ctx, messages.Fork{Key: s.key, Names: names})
}
