package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/cgroup"
	"github.com/coppice-run/coppice/internal/deadline"
	"github.com/coppice-run/coppice/internal/forkserver"
	"github.com/coppice-run/coppice/internal/ndjson"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/messages"
)

// maxCopies is how many copies a session makes of itself at once.
const maxCopies = 64

// copies are sessions that were copied from live ones and wait, by name, for
// whoever takes them. They are whole sessions between two cells: they run
// nothing, and cost the memory in which they and their originals differ.
type copies struct {
	mu      sync.Mutex
	waiting map[string]*Interpreter // guarded by mu
	closed  bool                    // guarded by mu
	// using is held by who copies a copy that waits: one at a time may talk to it.
	using sync.Mutex
}

// put has a copy wait under its name, in place of an earlier one. False: the
// server has ended.
func (c *copies) put(name string, i *Interpreter) bool {
	c.mu.Lock()
	old, closed := c.waiting[name], c.closed
	if !closed {
		if c.waiting == nil {
			c.waiting = map[string]*Interpreter{}
		}
		c.waiting[name] = i
	}
	c.mu.Unlock()
	if old != nil && !closed {
		discard(old)
	}
	return !closed
}

// take returns the copy that waits under a name, nil when there is no copy that
// lives.
func (c *copies) take(name string) *Interpreter {
	c.mu.Lock()
	i := c.waiting[name]
	delete(c.waiting, name)
	c.mu.Unlock()
	if i == nil || i.Err() != nil {
		return nil
	}
	return i
}

// pids returns the processes of the copies that wait.
func (c *copies) pids() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]int, 0, len(c.waiting))
	for _, i := range c.waiting {
		all = append(all, i.child.PID())
	}
	return all
}

// drop ends the copy of a name, and reports whether there was one.
func (c *copies) drop(name string) bool {
	c.mu.Lock()
	i := c.waiting[name]
	delete(c.waiting, name)
	c.mu.Unlock()
	if i != nil {
		discard(i)
	}
	return i != nil
}

// open lets copies wait, when the server starts.
func (c *copies) open() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = false
}

// close ends all of them.
func (c *copies) close() {
	c.mu.Lock()
	all := c.waiting
	c.waiting, c.closed = nil, true
	c.mu.Unlock()
	var wg sync.WaitGroup
	for _, i := range all {
		wg.Go(func() { discard(i) })
	}
	wg.Wait()
}

// discard ends a session that was never handed out. If it does not end, the session
// itself goes on trying.
func discard(i *Interpreter) {
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	_ = i.Close(ctx)
}

// Copy makes a copy of the session for each name; see kernel.Copier.
func (i *Interpreter) Copy(ctx context.Context, names []string) error {
	if i.copies == nil {
		return &messages.ForkRefused{Reason: messages.ForkUnsupported, Problem: "it belongs to no server"}
	}
	if len(names) == 0 || len(names) > maxCopies {
		return &messages.ForkRefused{Reason: messages.ForkTooMany, Problem: fmt.Sprintf("between 1 and %d copies can be made at once, not %d", maxCopies, len(names))}
	}
	made, err := i.fork(ctx, ndjson.Request{Type: ndjson.TypeFork, N: uint64(len(names))})
	if err != nil {
		return err
	}
	for n, one := range made {
		if !i.copies.put(names[n], one) {
			for _, left := range made[n:] {
				discard(left)
			}
			return errStopped
		}
	}
	return nil
}

// fork has the session fork as many copies of itself as a request says, and waits until
// they answer.
func (i *Interpreter) fork(ctx context.Context, r ndjson.Request) (_ []*Interpreter, err error) {
	if i.child.Inside() { // no one could watch what it forks
		return nil, &messages.ForkRefused{Reason: messages.ForkUnsupported, Problem: "it runs in a sandbox with a kernel of its own (isolation gvisor), whose processes this system does not see; use another rung for sessions that are to be copied"}
	}
	n := int(r.N)
	line, err := ndjson.AppendRequest(nil, r)
	if err != nil {
		return nil, err
	}
	stop := i.until(ctx)
	defer func() {
		stop(err)
		i.lines.Release()
	}()
	if err = i.write(line); err != nil {
		return nil, i.unwritten(ctx, err)
	}
	if f, err := i.answer(ctx); err != nil || f.Type != ndjson.TypeForking {
		return nil, refusal(f, err)
	}
	groups := make([]*cgroup.Group, n)
	for at := range groups {
		if groups[at], err = i.groups.new(); err != nil {
			break
		}
	}
	var children []*forkserver.Child
	if err == nil {
		children, err = i.child.Copies(groups)
	}
	if err != nil {
		i.cutOff() // it waits for descriptors that will not come
		for _, g := range groups {
			err = errors.Join(err, unused(g))
		}
		return nil, err
	}
	made := make([]*Interpreter, n)
	for at, c := range children {
		made[at] = newInterpreter(c, i.tracer, groups[at], i.mark)
		if l := i.lease.Load(); l != nil {
			made[at].own(l.share())
		}
		made[at].info.Of = i.name
		if i.name == "" { // a copy that is set aside
			made[at].info.Of = i.info.Of
		}
		made[at].copies, made[at].limits, made[at].groups = i.copies, i.limits, i.groups
	}
	f, err := i.answer(ctx)
	if err != nil || f.Type != ndjson.TypeDone {
		err = refusal(f, err)
	}
	for _, one := range made {
		if err == nil {
			err = one.begun(ctx)
		}
	}
	if err == nil {
		return made, nil
	}
	for _, one := range made {
		one.child.Never(err)
		discard(one)
	}
	return nil, fmt.Errorf("copy a session: %w", err)
}

// until has what waits on Main end with ctx; the caller calls stop with the error of its call. A
// session that has answered although ctx ended goes on. One that has not is of no use: nothing says
// that its answer is not that to the next request, and so there can be none.
func (i *Interpreter) until(ctx context.Context) (stop func(err error)) {
	past := deadline.Past(ctx, i.child.Main.SetDeadline)
	return func(err error) {
		if past() || err == nil || !errors.Is(err, context.Cause(ctx)) {
			_ = i.child.Main.SetDeadline(time.Time{}) // of what is closed nothing is expected
		}
	}
}

// answer reads one frame of a session in which no cell runs.
func (i *Interpreter) answer(ctx context.Context) (ndjson.Frame, error) {
	for {
		line, err := i.next(ctx, func() {})
		switch {
		case ctx.Err() != nil:
			return ndjson.Frame{}, context.Cause(ctx)
		case err != nil:
			return ndjson.Frame{}, i.gone(err)
		}
		f, err := i.parse(line)
		if !errors.Is(err, errForeign) && i.signOf(f) == none {
			return f, err
		}
	}
}

// refusal is why a session made no copies.
func refusal(f ndjson.Frame, err error) error {
	switch {
	case err != nil:
		return err
	case f.Type == ndjson.TypeRefused:
		return &messages.ForkRefused{Reason: messages.ForkReason(f.Name), Problem: f.Message}
	default:
		return fmt.Errorf("the session answered %q: %s", f.Type, f.Message)
	}
}

// begun waits until a copy says who it is.
func (i *Interpreter) begun(ctx context.Context) (err error) {
	stop := i.until(ctx)
	defer func() { stop(err) }()
	f, err := i.answer(ctx)
	i.lines.Release()
	if err != nil {
		return err
	}
	if f.Type != ndjson.TypeReady {
		return fmt.Errorf("a copy answered %q: %s", f.Type, f.Message)
	}
	i.child.Known(f.PID)
	i.info = kernel.Info{ID: fmt.Sprint(f.PID), PID: f.PID, Python: f.Python, Copy: true, Of: i.info.Of}
	i.setApart(true) // it has that of its original
	return nil
}

// CopyWaiting makes a copy of the copy that waits under one name, which then
// waits under another; the first one stays. The error is a *messages.ForkRefused
// when there is none that lives.
func (s *Server) CopyWaiting(ctx context.Context, from, to string) error {
	s.copies.using.Lock()
	defer s.copies.using.Unlock()
	s.copies.mu.Lock()
	i := s.copies.waiting[from]
	s.copies.mu.Unlock()
	if i == nil || i.Err() != nil {
		return &messages.ForkRefused{Reason: messages.ForkUnknown, Problem: "the checkpoint does not exist any more"}
	}
	return i.Copy(ctx, []string{to})
}

// DropWaiting ends the copy that waits under a name. False: none waited.
func (s *Server) DropWaiting(name string) bool {
	s.copies.using.Lock()
	defer s.copies.using.Unlock()
	return s.copies.drop(name)
}

// Waiting returns the names of the copies that wait and begin with prefix, sorted.
func (s *Server) Waiting(prefix string) []string {
	s.copies.mu.Lock()
	defer s.copies.mu.Unlock()
	var names []string
	for name, i := range s.copies.waiting {
		if strings.HasPrefix(name, prefix) && i.Err() == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Close ends the copies that wait. Run does so when it is asked to stop; a host
// whose fork server had failed, so that Run is not called any more, does it here.
// It removes the temporary files of confined sessions and the folders of control
// groups, too: all sessions are to be closed before.
func (s *Server) Close() error {
	s.copies.close()
	return errors.Join(s.keep.close(), s.closeGroups(), s.users.Close(), s.folders.Remove(), s.egress.Close())
}

// MemoryOf returns what the copy that waits under a name occupies, in bytes: the
// memory that is its own by now, and all that it refers to, which is what it can
// come to cost while its original changes. 0, 0 when that is not known.
func (s *Server) MemoryOf(name string) (own, all int64) {
	s.copies.mu.Lock()
	i := s.copies.waiting[name]
	s.copies.mu.Unlock()
	if i == nil {
		return 0, 0
	}
	own, err := process.Private(i.info.PID)
	if err != nil && !errors.Is(err, process.ErrUnsupported) {
		return 0, 0
	}
	return own, i.RSS()
}

var _ kernel.Copier = (*Interpreter)(nil)
