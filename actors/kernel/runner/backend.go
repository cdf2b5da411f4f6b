package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/actors/kernel/walls"
	"github.com/coppice-run/coppice/internal/forkserver"
	"github.com/coppice-run/coppice/internal/ndjson"
)

// Name is the backend's name in results and in the tree.
const Name = "runner"

// Options makes a backend. The zero value of a field is its default.
type Options struct {
	// Server is where sessions are made. Required.
	Server *Server
	// Prelude is Python source that runs in every new session, in its namespace.
	// "": none.
	Prelude string
	// Modules returns the source that loads the modules of a session in a working
	// directory; it runs after Prelude, which it needs. "": it has no modules. It is
	// called for each session, from any goroutine. nil: no session has modules.
	Modules func(cwd string) string
}

// Backend makes sessions. Any goroutine may use it.
type Backend struct {
	o     Options
	turns kernel.Turns // of those for which an interpreter is started
}

// New returns a backend.
func New(o Options) *Backend { return &Backend{o: o} }

// Name returns "runner".
func (b *Backend) Name() string { return Name }

// Start makes a session and waits until it is ready for cells.
func (b *Backend) Start(ctx context.Context, o kernel.StartOptions) (kernel.Interpreter, error) {
	progress := o.Progress
	if progress == nil {
		progress = func(string) {}
	}
	// A copy of a session is ready: it has its directory, its environment and the
	// prelude from its original.
	copied := b.o.Server.copies.take(o.Key.ID())
	if o.Once {
		if copied != nil {
			copied.name = o.Key.Session
			return copied, nil
		}
		return b.begin(ctx, o, progress)
	}
	i := copied
	if i == nil {
		kept, err := b.o.Server.adopt(ctx, o.Key, b.o.Server.o.Trace)
		if err != nil {
			return nil, err
		}
		if kept != nil {
			kept.name = o.Key.Session
			return kept, nil
		}
		if i, err = b.begin(ctx, o, progress); err != nil {
			return nil, err
		}
		i.info.Earlier = b.o.Server.keep.earlierEnd(o.Key)
	}
	i.name = o.Key.Session
	b.o.Server.keep.mayOutlive(i, o.Key)
	return i, nil
}

// begin makes a session that has nothing of an earlier one.
func (b *Backend) begin(ctx context.Context, o kernel.StartOptions, progress func(string)) (*Interpreter, error) {
	if b.o.Modules != nil {
		if modules := b.o.Modules(o.Key.Cwd); modules != "" {
			i, err := b.start(ctx, o, modules, progress)
			if err == nil || ctx.Err() != nil {
				return i, err
			}
			left := err
			if i, err = b.start(ctx, o, "", progress); err == nil {
				i.notice = kernel.ModulesLeftOut(left)
			}
			return i, err
		}
	}
	return b.start(ctx, o, "", progress)
}

// mostGone is how many fork servers may end under one start that loads modules: those may be
// what ends them.
const mostGone = 5

// start makes a session that loads modules.
func (b *Backend) start(ctx context.Context, o kernel.StartOptions, modules string, progress func(string)) (*Interpreter, error) {
	var was *place
	for gone := 0; ; {
		p, err := b.o.Server.places.Await(ctx, progress, o.Waiting)
		if err != nil {
			return nil, err
		}
		i, err := b.startIn(ctx, p, o, modules, progress)
		if err == nil || ctx.Err() != nil || !p.gone() && !errors.Is(err, forkserver.ErrServerGone) {
			return i, err
		}
		if p != was { // the same one may be met again until Run has heard of it
			was = p
			gone++
		}
		if modules != "" && gone >= mostGone {
			return nil, fmt.Errorf("%d fork servers ended while a session began: %w", gone, err)
		}
		select { // Run may still have to hear of it, and so may who reads what the server says
		case <-time.After(awayPoll):
		case <-ctx.Done():
		}
	}
}

// awayPoll is how often a start looks whether it is known that its fork server is gone.
const awayPoll = 20 * time.Millisecond

// startIn does so where sessions are made now.
func (b *Backend) startIn(ctx context.Context, p *place, o kernel.StartOptions, modules string, progress func(string)) (*Interpreter, error) {
	if o.Key.Cwd != "" && !p.rules.Covers(o.Key.Cwd) {
		return nil, fmt.Errorf("start a session: %w", walls.Closed(o.Key.Cwd))
	}
	if p.spawn != nil {
		back, err := b.turns.Take(ctx, progress, o.Waiting)
		if err != nil {
			return nil, err
		}
		defer back()
	}
	if o.Waiting != nil {
		o.Waiting(kernel.Waiting{Subject: p.subject()})
	}
	progress("starting a session")
	for again := false; ; again = true {
		i, spare, err := p.session(ctx, again)
		if err != nil {
			return nil, fmt.Errorf("start a session: %w", err)
		}
		i.copies, i.limits, i.groups = &b.o.Server.copies, limits(b.o.Server.o.Limits), p.groups
		err = i.prepare(ctx, o, b.o.Prelude+modules)
		if err == nil {
			return i, nil
		}
		died := i.Err() != nil
		c, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWait)
		closeErr := i.Close(c)
		cancel()
		if spare && died && ctx.Err() == nil {
			continue // it may have ended while it waited, and so may others; or of what it was given
		}
		return nil, fmt.Errorf("start a session: %w", errors.Join(err, closeErr))
	}
}

// prepare sends the session its place in the world and waits until it is ready.
func (i *Interpreter) prepare(ctx context.Context, o kernel.StartOptions, prelude string) (err error) {
	line, err := ndjson.AppendRequest(nil, ndjson.Request{
		Type: ndjson.TypeInit, Version: ndjson.Version, Mark: string(i.mark), Raw: true, Cwd: o.Key.Cwd, Env: ndjson.EnvPatch(o.Env), Prelude: prelude, Limits: i.limits.request(),
	})
	if err != nil {
		return err
	}
	stop := i.until(ctx)
	defer func() { stop(err) }()
	i.trace(sent, "main", line)
	_, err = i.child.Main.Write(line)
	if err == nil {
		line, err = i.next(ctx, func() {})
	}
	var f ndjson.Frame
	if err == nil {
		f, err = ndjson.ParseFrame(bytes.TrimPrefix(line, i.mark)) // one that failed before init has no mark
	}
	i.lines.Release()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return i.gone(err)
	case f.Type == ndjson.TypeFailed:
		return errors.New(f.Message)
	case f.Type != ndjson.TypeReady || f.Version != ndjson.Version:
		return fmt.Errorf("it answered %q of version %d, not ready of version %d", f.Type, f.Version, ndjson.Version)
	}
	i.child.Known(f.PID)
	i.notice = kernel.ModulesFailed(f.Message)
	i.info = kernel.Info{ID: fmt.Sprint(f.PID), PID: f.PID, Python: f.Python}
	if i.child.Inside() { // the number is the sandbox's
		i.info.ID, i.info.PID = fmt.Sprintf("%d.%d", i.child.Server(), f.PID), 0
	}
	i.setApart(true)
	return nil
}

var _ kernel.Backend = (*Backend)(nil)
