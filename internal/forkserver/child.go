package forkserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/process"
)

// Child is the process of one session, as the host sees it.
type Child struct {
	// Main carries requests and frames, Control pings, interrupts and input. Who
	// has the child reads and closes them.
	Main, Control *os.File

	raw  syscall.RawConn // of Main
	body body
	// pipes are copies of the read ends of its output, for [Child.Keep]; nil: there are
	// none, or they were handed over.
	pipes atomic.Pointer[pipes]
	// keeps says that copies of the child may outlive the host as it may itself.
	keeps bool
}

func newChild(main, control *os.File, b body) (*Child, error) {
	raw, err := main.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("use a socket: %w", err)
	}
	return &Child{Main: main, Control: control, raw: raw, body: b}, nil
}

// mainReader is Main as its reader sees it.
type mainReader struct{ c *Child }

func (r mainReader) Read(p []byte) (int, error) { return r.c.readMain(p) }

// MainReader returns a reader of Main.
func (c *Child) MainReader() io.Reader { return mainReader{c} }

// body is how a child is held: by its fork server or directly.
type body interface {
	// known takes the pid that the child itself reports.
	known(pid int)
	// never ends a copy that was never made.
	never(err error)
	identity() process.Identity
	ended() *ending
	signal(ctx context.Context, s os.Signal) error
	stop(ctx context.Context, o process.StopOptions) error
	drain(ctx context.Context) Output
}

// Output is text that a session printed and did not forward itself.
type Output struct{ Stdout, Stderr string }

// ending is the end of a child. It happens once.
type ending struct {
	mu   sync.Mutex
	done chan struct{} // closed with everything below written
	err  error
	last Output
	tell func() // called when done is closed; guarded by mu
}

func newEnding() *ending { return &ending{done: make(chan struct{})} }

// set says how the child ended. Only the first call counts.
func (e *ending) set(err error, last Output) {
	e.mu.Lock()
	select {
	case <-e.done:
		e.mu.Unlock()
		return
	default:
	}
	e.err, e.last = err, last
	tell := e.tell
	close(e.done)
	e.mu.Unlock()
	if tell != nil {
		tell()
	}
}

// OnEnd has f called once when the process has ended, in the goroutine that
// learns of it, which f must not hold up; at once when it has ended already.
// There is one f.
func (c *Child) OnEnd(f func()) {
	e := c.body.ended()
	e.mu.Lock()
	select {
	case <-e.done:
		e.mu.Unlock()
		f()
		return
	default:
	}
	e.tell = f
	e.mu.Unlock()
}

// Known records the pid that the session told, which is also how a child gets
// its identity: it is called when the session has just answered.
func (c *Child) Known(pid int) { c.body.known(pid) }

// Never says that a copy, see [Child.Copies], never said who it is. It is then
// taken as ended.
func (c *Child) Never(err error) { c.body.never(err) }

// pipes are the read ends of what a child prints past Python, its stdout and its stderr.
type pipes [2]*os.File

func (p *pipes) close() {
	if p == nil {
		return
	}
	for _, f := range p {
		if f != nil {
			_ = f.Close()
		}
	}
}

// ErrNotKept says that a child cannot outlive its host.
var ErrNotKept = errors.New("the session has nothing by which it could outlive its host")

// Keep has hold called with the descriptors by which a later process can go on with the
// child, in the order in which [Adopt] takes them; hold makes copies of its own. They are there
// once, of a child of a fork server with [Options.Lifeline]; else the error is
// [ErrNotKept]. Of such a child Keep or Close is called in any case.
func (c *Child) Keep(hold func(files []*os.File) error) error {
	own := c.pipes.Swap(nil)
	if own == nil {
		return ErrNotKept
	}
	defer own.close()
	return hold([]*os.File{c.Main, c.Control, own[0], own[1]})
}

// Close closes the host's ends of a child that is not read any more.
func (c *Child) Close() {
	_ = c.Main.Close()
	_ = c.Control.Close()
	c.pipes.Swap(nil).close()
}

// Inside reports whether the process runs in a kernel of its own and has no number here.
func (c *Child) Inside() bool {
	f, ok := c.body.(outOfSight)
	return ok && f.inside()
}

// Server is the number of the process that a child which is inside runs in, 0 of others.
func (c *Child) Server() int {
	if f, ok := c.body.(outOfSight); ok && f.inside() {
		return f.in()
	}
	return 0
}

// Subject is what an answer of the child takes, itself or the kernel that it is in.
func (c *Child) Subject() opportunity.Subject {
	if f, ok := c.body.(outOfSight); ok && f.inside() {
		return f.subject()
	}
	return opportunity.Processes(c.body.identity())
}

// CPUTime is the processor time that the process has used.
func (c *Child) CPUTime(ctx context.Context) (time.Duration, error) {
	if f, ok := c.body.(outOfSight); ok && f.inside() {
		return f.used(ctx)
	}
	return process.CPUTime(c.PID())
}

// outOfSight is a body that may be in a kernel of its own.
type outOfSight interface {
	used(ctx context.Context) (time.Duration, error)
	inside() bool
	in() int
	subject() opportunity.Subject
}

// PID returns the process id, 0 while it is not known, and of one that is inside.
func (c *Child) PID() int { return c.body.identity().PID }

// Done is closed when the process is gone.
func (c *Child) Done() <-chan struct{} { return c.body.ended().done }

// Err says how the process ended, once Done is closed: nil after exit code 0, a
// *process.ExitError after any other end, a *LostError when that cannot be known, and
// any other error when there never was a process.
func (c *Child) Err() error {
	e := c.body.ended()
	select {
	case <-e.done:
		return e.err
	default:
		return nil
	}
}

// LastWords is what the process printed before it ended and had not forwarded,
// once Done is closed.
func (c *Child) LastWords() Output {
	e := c.body.ended()
	select {
	case <-e.done:
		return e.last
	default:
		return Output{}
	}
}

// Signal sends a signal to the process alone. It does nothing when the process
// has ended.
func (c *Child) Signal(ctx context.Context, s os.Signal) error { return c.body.signal(ctx, s) }

// Stop ends the process and its group: SIGTERM, the grace period, SIGKILL. It
// returns nil when the process is gone. The end of ctx cuts the grace short.
func (c *Child) Stop(ctx context.Context, o process.StopOptions) error { return c.body.stop(ctx, o) }

// Drain returns what the process has printed and does not forward, because
// native code holds its interpreter's lock. Whoever waits for a session calls it
// now and then: a pipe that is not read would stop that code.
func (c *Child) Drain(ctx context.Context) Output { return c.body.drain(ctx) }
