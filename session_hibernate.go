package coppice

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/hibernate"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/store"
	"github.com/coppice-run/coppice/supervisor"
)

// Hibernate writes what the session has in memory to disk and ends its kernel. The session's next
// call restores it, in this host or in a later one with the same store, and its result says so:
// [messages.StateRestored], with the list of what was kept, lost and changed. The report has the
// same list. Calls that arrive meanwhile wait.
//
// A copy of the interpreter writes it and another interpreter reads it back before the kernel
// ends. This takes milliseconds for small variables, and about a second for a hundred megabytes.
//
// The error is a [*messages.HibernateRefused], and the session is as it was, if
// [Options.Hibernate] does not allow it, if something would be lost and may not be, if something
// runs or waits in the session, or if it has no kernel in which something has run.
func (s *Session) Hibernate(ctx context.Context) (hibernate.Report, error) {
	if s.err != nil {
		return hibernate.Report{}, s.err
	}
	report, err := supervisor.Ask[hibernate.Report](ctx, s.gateway(), messages.Hibernate{Key: s.key})
	if errors.Is(err, supervisor.ErrNoProcess) || errors.Is(err, supervisor.ErrGone) {
		return report, ErrClosed
	}
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("keep the session %q on disk: %w; the list of those on disk tells whether it is kept all the same", s.key.Session, err)
	}
	return report, err
}

// Hibernated returns the sessions that are on disk and have no kernel, including those of earlier
// hosts with the same store, sorted by name. There are none without Options.Hibernate. Any
// goroutine may call it.
func (h *Host) Hibernated(ctx context.Context) ([]hibernate.Asleep, error) {
	if h.asleep == nil {
		return nil, nil
	}
	return h.asleep.List(ctx)
}

// Snapshots returns what copies sessions on disk, for other sessions that begin with their state;
// nil without Options.Hibernate. Any goroutine may call it.
func (h *Host) Snapshots() *hibernate.Snapshots {
	if h.asleep == nil {
		return nil
	}
	return h.asleep.Snapshots()
}

// hibernatedFolder is where sessions are kept on disk, in the folder of a host.
const hibernatedFolder = "hibernated"

// hibernationKey is the file of the key that they are sealed with.
const hibernationKey = "hibernate.key"

// openHibernation opens what keeps sessions on disk, if they are to be.
func (h *Host) openHibernation(ctx context.Context) error {
	if h.o.Hibernate == hibernate.Never {
		return nil
	}
	if b, ok := can[kernel.Freezing](h); !ok || !b.Freezes() {
		return fmt.Errorf("%w: Hibernate is %q, and %s; leave it at never, or use the runner backend on Linux or macOS, or a gateway of the host's own on Linux", ErrOptions, h.o.Hibernate, h.cannot("cannot keep sessions on disk"))
	}
	dir := filepath.Join(h.o.dir, hibernatedFolder)
	if h.o.Store == nil {
		s, err := store.OpenFolder(ctx, store.FolderOptions{Dir: dir, KeyFile: filepath.Join(h.o.dir, hibernationKey)})
		if err != nil {
			return err
		}
		h.o.Store = s
	}
	var err error
	h.asleep, err = hibernate.New(hibernate.Options{
		Store: h.o.Store, Policy: h.o.Hibernate, Scratch: filepath.Join(dir, "scratch"), Logger: h.o.Logger,
		MaxSaved: h.o.MaxSavedCheckpoints, SavedAge: h.o.SavedCheckpointAge,
	})
	return err
}

// hibernation is what keeps sessions on disk, as kernels see it; nil: nothing does.
func (h *Host) hibernation() kernel.Hibernation {
	if h.asleep == nil {
		return nil
	}
	return h.asleep
}

// drop drops what is kept on disk of the session, and returns when it is gone.
func (s *Session) drop(ctx context.Context, err error) error {
	if s.host.asleep == nil || err != nil {
		return err
	}
	return s.host.asleep.Drop(ctx, s.key)
}
