package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
	"github.com/coppice-run/coppice/supervisor/strategy"
	"github.com/coppice-run/coppice/workspace/files"
)

// How long the end of a workspace may take: that of its processes and of the process
// that kernels come from, that of its kernels, and that of its folder, which waits for them
// where they come from no process of its own.
const (
	stopTimeout    = time.Minute
	kernelsTime    = 20 * time.Second
	kernelsTimeout = 30 * time.Second
	folderTimeout  = 40 * time.Second
)

// kindServer is the kind of the process that kernels come from.
const kindServer = "server"

// supervisor is the supervisor of one workspace.
func (w *Workspace) supervisor() *supervisor.Supervisor {
	children := []supervisor.Spec{{Key: "folder", Kind: "folder", StopTimeout: folderTimeout, New: func() supervisor.Behaviour { return &folder{w: w} }}}
	if w.place.Server != nil {
		server := *w.place.Server
		server.Kind = kindServer
		// The kernels end before what they come from, and everything else before them.
		end := supervisor.Spec{Key: "kernels", Kind: "kernels", StopTimeout: kernelsTimeout, New: func() supervisor.Behaviour { return &kernels{w: w} }}
		children = append(children, server, end)
	}
	if w.limited() {
		children = append(children, supervisor.Spec{Key: "limits", Kind: "limits", New: func() supervisor.Behaviour { return &watch{w: w} }})
	}
	return supervisor.New(supervisor.Options{
		Name: w.name, Children: children, Handler: &inner{w: w, running: map[string]run{}},
		Strategy: strategy.For(kindServer, strategy.Backoff(strategy.BackoffOptions{Initial: 100 * time.Millisecond, Max: 10 * time.Second})),
	})
}

// inner is the workspace's part of its supervisor.
type inner struct {
	supervisor.BaseHandler
	w        *Workspace
	busy     supervisor.Work // the occupy in hand
	turn     uint64          // its turn; 0: there is none
	released uint64          // the last turn that is over
	running  map[string]run  // the processes, by their names here
}

// Open lets the workspace reach its supervisor.
func (h *inner) Open(s *supervisor.Supervisor) error {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	h.w.self = s.Ctx().Self()
	return nil
}

// Handle serves what comes from the set and from the workspace.
func (h *inner) Handle(s *supervisor.Supervisor, msg any) error {
	switch m := msg.(type) {
	case supervisor.Work:
		switch o := m.Msg.(type) {
		case create:
			s.Ctx().Finish(m, o.w)
		case occupy:
			h.busy, h.turn = m, o.turn
			h.free(s)
		default:
			return supervisor.Unknown(o)
		}
	case run:
		h.start(s, m)
	case release:
		h.released = max(h.released, m.turn)
		h.free(s)
	default:
		return supervisor.Unknown(msg)
	}
	return nil
}

// start makes the actor of a process. What becomes of it the actor tells itself.
func (h *inner) start(s *supervisor.Supervisor, r run) {
	work, _ := supervisor.NewWork[bool](r)
	work.Last = true
	s.Submit("process/"+r.p.id, work)
}

// Spec makes the actor of a process.
func (h *inner) Spec(_ *supervisor.Supervisor, key string, work supervisor.Work) (supervisor.Spec, error) {
	r, ok := work.Msg.(run)
	if !ok {
		return supervisor.Spec{}, supervisor.Unknown(work.Msg)
	}
	h.running[key] = r
	return supervisor.Spec{Key: key, Kind: kindProcess, StopTimeout: processStop, New: func() supervisor.Behaviour { return &processActor{w: h.w, r: r} }}, nil
}

// Unserved hears of a process that will not be started, or whose actor ended before it.
func (h *inner) Unserved(_ *supervisor.Supervisor, work supervisor.Work, why *supervisor.ServiceError) {
	work.Settle(true)
	if r, ok := work.Msg.(run); ok && !why.Dispatched {
		r.refuse()
	}
}

// Changed counts the processes that have ended.
func (h *inner) Changed(_ *supervisor.Supervisor, e messages.ChildChanged) {
	if r, ok := h.running[e.Key]; ok && e.To == messages.ChildGone {
		delete(h.running, e.Key)
		r.left()
	}
}

// free ends the use that is over. Its release may have come before it did.
func (h *inner) free(s *supervisor.Supervisor) {
	if h.turn == 0 || h.turn > h.released {
		return
	}
	h.turn = 0
	s.Ctx().Finish(h.busy, true)
}

// folderError is why the folder of a workspace cannot be used.
type folderError struct{ err error }

// Error returns it.
func (e *folderError) Error() string { return e.err.Error() }

// folder is the actor that has the folder of a workspace: the first that is made, and
// the last that ends.
type folder struct{ w *Workspace }

// Init makes the folder, or looks whether it is there.
func (f *folder) Init(*supervisor.Ctx) error {
	w := f.w
	if w.o.Folder == "" {
		if err := os.MkdirAll(w.folder, 0o700); err != nil {
			return &folderError{fmt.Errorf("make the folder of the workspace %s: %w", w.name, err)}
		}
	}
	opened, err := files.Open(w.folder, files.Options{Quota: w.o.Quota})
	if err != nil {
		return &folderError{&OptionsError{"folder", fmt.Sprintf("the folder of the workspace %s cannot be used: %v; name a directory that is there", w.name, err)}}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.files = opened
	return nil
}

// Handle knows no messages.
func (f *folder) Handle(_ *supervisor.Ctx, msg any) error { return supervisor.Unknown(msg) }

// Terminate waits for the end of the kernels, and removes what belongs to the
// workspace alone.
func (f *folder) Terminate(_ *supervisor.Ctx, exit supervisor.Exit) {
	w := f.w
	w.endKernels(exit)
	w.mu.Lock()
	opened := w.files
	w.mu.Unlock()
	err := errors.Join(w.sweep(), w.forgetProcesses())
	if opened != nil {
		err = errors.Join(err, opened.Close())
	}
	w.discard()
	if err = errors.Join(err, w.own.Release(opened != nil)); err != nil {
		w.set.o.Logger.Warn("something of a workspace is left", "workspace", w.name, "err", err)
	}
}

// kernels is the actor that has the kernels of a workspace end, which are children of the
// gateway, where they come from a process of the workspace.
type kernels struct{ w *Workspace }

// Init does nothing: they begin with their sessions.
func (*kernels) Init(*supervisor.Ctx) error { return nil }

// Handle knows no messages.
func (*kernels) Handle(_ *supervisor.Ctx, msg any) error { return supervisor.Unknown(msg) }

// Terminate waits for their end.
func (k *kernels) Terminate(_ *supervisor.Ctx, exit supervisor.Exit) { k.w.endKernels(exit) }

// endKernels has the kernels of the workspace end, and waits until they have. Only the first
// call does.
func (w *Workspace) endKernels(exit supervisor.Exit) {
	reason, detail := reasonOf(exit.Value())
	w.closeAs(reason, detail, true) // if that was not done
	w.mu.Lock()
	reply, asked := w.sessionsEnded, w.asked
	w.asked = false
	w.mu.Unlock()
	if !asked {
		return
	}
	// The gateway and its kernels wait for nothing of the workspace, so that this is
	// no circle; where the gateway is over, its kernels are.
	ctx, cancel := context.WithTimeout(context.Background(), kernelsTime)
	defer cancel()
	if _, err := reply.Wait(ctx); err != nil && !errors.Is(err, supervisor.ErrGone) {
		w.set.o.Logger.Warn("the kernels of a workspace have not ended", "workspace", w.name, "err", err)
	}
}

// giveUp removes what was made for a workspace that did not come to be, with its folder.
func (w *Workspace) giveUp() {
	w.discard()
	if err := w.own.Release(false); err != nil {
		w.set.o.Logger.Warn("the folder of a workspace is left", "workspace", w.name, "err", err)
	}
}

// discard removes what was made for the kernels of a workspace, none of which lives. Only
// the first call does.
func (w *Workspace) discard() {
	if !w.discarded.CompareAndSwap(false, true) {
		return
	}
	w.unclaim()
	if err := w.place.Owner.Close(context.Background()); err != nil {
		w.set.o.Logger.Warn("processes of a workspace did not end", "workspace", w.name, "err", err)
	}
	if w.group != nil {
		ctx, cancel := context.WithTimeout(context.Background(), groupTime)
		if err := w.group.Remove(ctx); err != nil {
			w.set.o.Logger.Warn("remove the control group of a workspace", "workspace", w.name, "err", err)
		}
		cancel()
	}
	if c, ok := w.place.Backend.(kernel.Closer); ok {
		if err := c.Close(); err != nil {
			w.set.o.Logger.Warn("remove temporary files", "workspace", w.name, "err", err)
		}
	}
}

var _ supervisor.Behaviour = (*folder)(nil)
