package coppice

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/hibernate"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/store"
	"github.com/coppice-run/coppice/supervisor"
)

// ErrNoCheckpoint is matched by the error about a checkpoint on disk that is not there.
var ErrNoCheckpoint = store.ErrNone

// SaveOptions say how a checkpoint is made. The zero value of each field is its default.
type SaveOptions struct {
	// Owner is for whom, see Request.Owner: one who may not have the checkpoint that is
	// there does not replace it. "": for no one in particular, who may replace any.
	Owner string
	// Lossy keeps what can be kept, and the report says what is not. Without it, the policy
	// of [Options.Hibernate] decides.
	Lossy bool
	// Replace puts the checkpoint in place of one of that name. Without it, that is refused.
	Replace bool
}

// RestoreOptions say how a checkpoint is restored. The zero value of each field is its
// default.
type RestoreOptions struct {
	// Owner is for whom, see Request.Owner. "": for no one in particular, or for the
	// workspace's owner.
	Owner string
}

// SaveCheckpoint keeps what the session has in memory on disk, under a name, and the session
// goes on. [Session.RestoreCheckpoint] restores it into this session or another one, any
// number of times, in this host or a later one with the same store, until
// [Host.DropCheckpoint] or [Options.SavedCheckpointAge]. Neither a reset nor the session's end
// drops it; the end of its workspace does, and its last owner's ([Host.ReleaseOwner]). The report says what of it is kept, lost
// and changed: it was read by a second interpreter. Calls that come meanwhile wait.
//
// A session that hibernates needs no kernel for it. Whoever's calls the session has served may
// have the checkpoint, as with [Session.Hibernate].
//
// The name has letters, digits, dots, dashes and underscores, and begins with a letter or a
// digit. The error is a *RequestError for another one, and a *[messages.HibernateRefused] when
// the host's options do not allow it, when something would be lost and may not be, when
// something runs or waits in the session, when nothing has run in it, and when there is a
// checkpoint of that name, or as many as [Options.MaxSavedCheckpoints] allows.
func (s *Session) SaveCheckpoint(ctx context.Context, name string, o SaveOptions) (hibernate.Report, error) {
	if s.err != nil {
		return hibernate.Report{}, s.err
	}
	if err := checkpointName(name); err != nil {
		return hibernate.Report{}, err
	}
	refused := &messages.HibernateRefused{Checkpoint: name}
	if s.host.asleep == nil {
		refused.Reason, refused.Problem = messages.HibernateOff, noStore
		if b, ok := s.backend().(kernel.Freezing); !ok || !b.Freezes() {
			refused.Reason, refused.Problem = messages.HibernateUnsupported, s.host.cannot(noFreezing)
		}
		return hibernate.Report{}, refused
	}
	m := messages.SaveCheckpoint{Key: s.key, Checkpoint: s.checkpoint(name), Owner: o.Owner, Lossy: o.Lossy, Replace: o.Replace}
	report, err := supervisor.Ask[hibernate.Report](ctx, s.gateway(), m)
	if r, ok := errors.AsType[*messages.HibernateRefused](err); ok && r.Reason == messages.HibernateNoKernel {
		report, err = s.host.asleep.SaveAsleep(ctx, m)
		if again, ok := errors.AsType[*messages.HibernateRefused](err); ok && again.Reason == messages.HibernateNoKernel {
			err = r // which says more
		}
	}
	if errors.Is(err, supervisor.ErrNoProcess) || errors.Is(err, supervisor.ErrGone) {
		return report, ErrClosed
	}
	if r, ok := errors.AsType[*messages.HibernateRefused](err); ok {
		*refused = *r
		refused.Checkpoint = name
		return hibernate.Report{}, refused
	}
	return report, err
}

// RestoreCheckpoint puts the session back to a state that [Session.SaveCheckpoint] has kept, of
// this session or another one, whose kernel and host may be gone. What the session had until then
// is gone. The session's next result says [messages.StateRestored], with the list of what was
// kept, lost and changed, which is also returned here. A session has only the checkpoints of its
// own workspace, and a session in no workspace has those of none. The session stays in its own
// working directory.
//
// A separate interpreter reads the checkpoint before anything ends. The error is a
// [*messages.RestoreRefused] if there is no such checkpoint, if its owners are others, if it was
// made by another version of Python or of a package, if its record was changed, or if something
// runs or waits in the session. The checkpoint then stays, and so does what the session had,
// unless the error says that it has ended. If ctx ends while the new kernel starts, the start
// continues.
func (s *Session) RestoreCheckpoint(ctx context.Context, name string, o RestoreOptions) (messages.Restored, error) {
	if s.err != nil {
		return messages.Restored{}, s.err
	}
	if err := checkpointName(name); err != nil {
		return messages.Restored{}, err
	}
	if s.host.asleep == nil {
		refused := &messages.RestoreRefused{Checkpoint: name, Reason: messages.RestoreOff, Problem: noStore}
		if b, ok := s.backend().(kernel.Freezing); !ok || !b.Freezes() {
			refused.Reason, refused.Problem = messages.RestoreUnsupported, s.host.cannot(noFreezing)
		}
		return messages.Restored{}, refused
	}
	leave, _, owner, err := s.enter() // its walls stand while what was kept is tried
	if err != nil {
		return messages.Restored{}, err
	}
	defer leave()
	if o.Owner == "" {
		o.Owner = owner
	}
	trial := kernel.Sleeper{Key: s.key, Backend: s.backend()}
	if s.ws != nil {
		trial.Env = s.ws.Env()
	}
	ready, err := s.host.asleep.Prepare(ctx, s.checkpoint(name), o.Owner, trial)
	if err != nil {
		return messages.Restored{}, err
	}
	defer ready.Leave()
	return s.beginWith(ctx, name, ready, o)
}

// beginWith has the session's next kernel begin with what was made ready.
func (s *Session) beginWith(ctx context.Context, name string, ready *hibernate.Ready, o RestoreOptions) (messages.Restored, error) {
	refused := func(reason messages.RestoreReason, problem string, err error) (messages.Restored, error) {
		ready.Close()
		return messages.Restored{}, &messages.RestoreRefused{Checkpoint: name, Reason: reason, Problem: problem, Ended: true, Err: err}
	}
	for {
		_, had, err := s.host.Find(ctx, s.key)
		if err != nil {
			return messages.Restored{}, err
		}
		s.forgetCopy() // else it would become the kernel
		err = s.ask(ctx, messages.RestoreCheckpoint{Key: s.key, Ready: ready.ID()})
		starting := false
		if r, ok := errors.AsType[*messages.RestoreRefused](err); ok {
			starting = r.Reason == messages.RestoreStarting
			err = hibernate.NotRestored(name, r)
		}
		if err != nil && !starting {
			return messages.Restored{}, err
		}
		// A call without cells returns when the kernel has started.
		r, failed := s.execute(ctx, Request{Owner: o.Owner})
		if was := ready.Restored(); was != nil {
			return *was, nil
		}
		switch {
		case ctx.Err() != nil:
			return messages.Restored{}, context.Cause(ctx)
		case failed == nil && r.Outcome != messages.OutcomeOK:
			failed = r.Err()
		}
		switch {
		case starting && failed == nil:
			continue
		case starting:
			return messages.Restored{}, err
		case failed != nil && !had: // nothing has ended for it
			ready.Close()
			return messages.Restored{}, hibernate.NotRestored(name, failed)
		case failed != nil:
			return refused(messages.RestoreFailed, failed.Error(), failed)
		}
		return refused(messages.RestoreFailed, "the session was reset or closed meanwhile", nil)
	}
}

// SavedCheckpoints returns the checkpoints on disk, including those of earlier hosts with the
// same store, sorted by workspace and name. There are none without Options.Hibernate. Any
// goroutine may call it.
func (h *Host) SavedCheckpoints(ctx context.Context) ([]hibernate.Saved, error) {
	if h.asleep == nil {
		return nil, nil
	}
	return h.asleep.Checkpoints(ctx)
}

// DropCheckpoint drops a checkpoint on disk, even one that cannot be restored, for an owner; "":
// for no one in particular, who may drop any. The error matches [ErrNoCheckpoint] if there is
// none with that name, and is a [*messages.RestoreRefused] if it belongs to another owner. Any
// goroutine may call it.
func (h *Host) DropCheckpoint(ctx context.Context, key messages.CheckpointKey, owner string) error {
	if h.asleep == nil {
		return fmt.Errorf("drop the checkpoint %s: %w", key, ErrNoCheckpoint)
	}
	err := h.asleep.DropCheckpoint(ctx, key, owner)
	if _, ok := errors.AsType[*store.RefusedError](err); ok {
		return hibernate.NotRestored(key.Name, err)
	}
	return err
}

// checkpoint is the session's checkpoint of a name.
func (s *Session) checkpoint(name string) messages.CheckpointKey {
	return messages.CheckpointKey{Name: name, Workspace: s.key.Workspace}
}

// Why nothing is kept on disk.
const (
	noStore    = "this host keeps no sessions on disk; set Options.Hibernate (coppice serve --hibernate lossless)"
	noFreezing = "cannot keep sessions on disk; use the runner backend on Linux or macOS"
)

var checkpointNames = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`) })

// checkpointName refuses a name that a checkpoint cannot have.
func checkpointName(name string) error {
	if !checkpointNames().MatchString(name) {
		return &RequestError{"name", fmt.Sprintf("%.120q cannot be the name of a checkpoint; use up to 100 letters, digits, dots, dashes and underscores, the first a letter or a digit", name)}
	}
	return nil
}
