package runner

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/cgroup"
	"github.com/coppice-run/coppice/internal/estate"
	"github.com/coppice-run/coppice/internal/forkserver"
	"github.com/coppice-run/coppice/internal/ipctrace"
	"github.com/coppice-run/coppice/internal/ndjson"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/messages"
)

// Interpreter is one session.
type Interpreter struct {
	child *forkserver.Child
	info  kernel.Info // set before the interpreter is handed out
	name  string      // the name of its session, "" for a copy that waits; as info
	// copies is where copies of the session wait; set before it is handed out.
	copies *copies
	mark   []byte // what its lines begin with from init on; never changed
	limits limits // of the session; set before it is handed out
	// groups is where copies of the session get theirs; set before it is handed out.
	groups *groups
	// notice comes with the first cell; nil when there is none to show, or it was
	// shown. It belongs to Start, and then to Execute.
	notice *messages.Notice

	// held is how the session outlives its host, nil when it does not; Outlive sets it, before a
	// cell runs. at is where the event comes from that is handed on, and probes
	// how many answers come to what was no request; unsettled says that answers to what an earlier
	// host asked may be to come. They belong to Execute.
	// keeper would have it outlive the host, as the session keeps; nil: nothing does.
	keeper    *keeper
	keeps     messages.SessionKey
	held      atomic.Pointer[kept]
	at        estate.Place
	probes    int
	unsettled bool

	// lines reads Main; it belongs to Start, and then to Execute.
	lines *ndjson.Reader
	// request is the buffer of the last request; it belongs to Execute.
	request []byte

	// writing holds one token while a control request is written: the answer to
	// a host call can be long, and what waits behind it does so within its context.
	writing chan struct{}
	sending lines // what goes out there; who holds writing has it
	// hosting counts the goroutines that serve host calls; Close joins them.
	hosting sync.WaitGroup

	mu      sync.Mutex
	cells   uint64                   // the number of the last cell; guarded by mu
	running uint64                   // the cell that runs, 0 between cells; guarded by mu
	asked   uint64                   // the number of the last control request; guarded by mu
	answers map[uint64]chan struct{} // control requests that wait, by number; guarded by mu
	closing bool                     // guarded by mu
	cut     bool                     // it let go of its descriptors and lived; guarded by mu
	left    bool                     // it was left to the next host; guarded by mu
	over    bool                     // its process has ended; guarded by mu

	tracer *ipctrace.File // nil: tracing is off
	group  *cgroup.Group  // nil: it has no group of its own
	// lease is the session's user, which is given up with its process; nil: the host's.
	lease atomic.Pointer[held]

	done chan struct{} // closed by the control goroutine when the process is gone
	// Written before done is closed: how it ended, and whether that was because its
	// group used too much memory.
	err         error
	outOfMemory bool
}

// newInterpreter takes a process over. A copy of a session has the mark of its
// original; nil: it is not a copy.
func newInterpreter(child *forkserver.Child, tracer *ipctrace.File, group *cgroup.Group, mark []byte) *Interpreter {
	if mark == nil {
		mark = []byte(rand.Text())
	}
	i := &Interpreter{
		mark: mark, child: child, tracer: tracer, group: group, lines: ndjson.NewReader(child.MainReader(), ndjson.MaxFrame).Mark(mark),
		answers: map[uint64]chan struct{}{}, done: make(chan struct{}), writing: make(chan struct{}, 1),
	}
	// A process that the session started may hold its descriptors open for ever: the
	// end of the session is that of its process, not theirs alone.
	child.OnEnd(func() {
		_ = child.Control.SetReadDeadline(time.Unix(1, 0))
		_ = child.Main.SetReadDeadline(time.Unix(1, 0))
	})
	go i.control() // ends with the process; Done is its join
	return i
}

// Info returns the session's process id and Python version.
func (i *Interpreter) Info() kernel.Info { return i.info }

// Done is closed when the session's process is gone.
func (i *Interpreter) Done() <-chan struct{} { return i.done }

// Err says why it is gone.
func (i *Interpreter) Err() error {
	select {
	case <-i.done:
		return i.err
	default:
		return nil
	}
}

// errForeign is about a line that does not have the session's mark.
var errForeign = errors.New("the code wrote to a descriptor of the session; a line there was left out")

// parse reads a line of the session. Code that has guessed the number of a
// descriptor writes there too: what stands before the mark is not the session's.
func (i *Interpreter) parse(line []byte) (ndjson.Frame, error) {
	own, ok := bytes.CutPrefix(line, i.mark)
	if !ok {
		at := bytes.LastIndex(line, i.mark)
		if at < 0 {
			return ndjson.Frame{}, errForeign
		}
		own = line[at+len(i.mark):]
	}
	return ndjson.ParseFrame(own)
}

// killWait is how long a session that let go of its descriptors has to end. A
// process that ends does both at once.
const killWait = 300 * time.Millisecond

// control reads the control descriptor until the session ends.
func (i *Interpreter) control() {
	lines := ndjson.NewSmallReader(i.child.Control, ndjson.MaxControl)
	for {
		line, err := lines.Next()
		if _, ok := errors.AsType[*ndjson.TooLongError](err); ok {
			continue
		}
		if err != nil {
			break
		}
		i.trace(received, "control", line)
		f, err := i.parse(line)
		if err != nil || (f.Type != ndjson.TypePong && f.Type != ndjson.TypeInterrupting) {
			continue
		}
		i.mu.Lock()
		if answer := i.answers[f.N]; answer != nil {
			close(answer)
			delete(i.answers, f.N)
		}
		i.mu.Unlock()
	}
	timer := time.NewTimer(killWait)
	defer timer.Stop()
	for waiting := !i.isLeft(); waiting; {
		select {
		case <-i.child.Done():
			waiting = false
		case <-timer.C:
			i.cutOff()
			waiting = !i.isLeft() // it may have been left meanwhile, and then does not end here
			timer.Reset(killWait)
		}
	}
	i.leaveGroup()
	i.leaveUser()
	if i.err = errLeft; !i.isLeft() {
		i.err = i.lost()
		i.letGo()
	}
	_ = i.child.Control.Close()
	_ = i.child.Main.SetReadDeadline(time.Unix(1, 0))
	close(i.done)
	i.leaveUser() // one that came meanwhile: own looks after it has put it there
}

// cutOff ends a session that has closed a descriptor and lives: it cannot be reached
// any more. When it fails it is tried again. One that was left is the next host's.
func (i *Interpreter) cutOff() {
	if i.isLeft() {
		return
	}
	// One that was killed may be a zombie still, of which nothing was heard yet.
	_, err := process.Identify(i.child.PID())
	if i.child.Inside() {
		err = nil // whether it lives is not seen
	}
	i.mu.Lock()
	i.cut = i.cut || (!i.closing && !errors.Is(err, process.ErrNoProcess))
	i.mu.Unlock()
	_ = i.child.Stop(context.Background(), process.StopOptions{Grace: -1})
}

// lost says how the process ended.
func (i *Interpreter) lost() *kernel.LostError {
	err, pid := i.child.Err(), i.child.PID()
	var exit *process.ExitError
	var unknown *forkserver.LostError
	i.mu.Lock()
	cut := i.cut
	i.mu.Unlock()
	const (
		killed  = 9         // SIGKILL, which is what cutOff ends with
		cutExit = 128 + 108 // of a session that has noticed it first; side.py says so
	)
	switch {
	case i.outOfMemory:
		return &kernel.LostError{PID: pid, Reason: i.limits.outOfMemoryText(), Exceeded: &messages.ResourceLimitExceeded{Limit: messages.LimitMemory}, Err: err}
	case err == nil:
		return &kernel.LostError{PID: pid, Reason: "the Python process exited with code 0"}
	case errors.As(err, &exit) && (exit.Signal == killed && cut || exit.Code == cutExit):
		return &kernel.LostError{PID: pid, Reason: "the code closed the session's own descriptors, and the Python process was ended", Err: err}
	case errors.As(err, &exit):
		return &kernel.LostError{PID: pid, Reason: "the Python process " + exit.Error(), Err: err}
	case errors.As(err, &unknown) && unknown.Copy:
		return &kernel.LostError{PID: pid, Reason: "the Python process is gone (how it ended is not known: it was a copy of another session)", Err: err}
	case errors.As(err, &unknown):
		return &kernel.LostError{PID: pid, Reason: "the Python process is gone (how it ended is not known: its fork server had ended before it)", Err: err}
	default:
		return &kernel.LostError{PID: pid, Reason: err.Error(), Err: err}
	}
}

// gone waits until the session's end is known, after Main said that it ended.
// It does not trust Main alone: code can close it. One that was left goes on: what is known
// soon is that it was.
func (i *Interpreter) gone(err error) error {
	if i.isLeft() {
		<-i.done
	}
	if !i.ended(killWait) {
		i.cutOff()
		if !i.ended(closeWait) {
			return &kernel.LostError{Reason: "the Python process closed its connection", Err: err}
		}
	}
	return i.err
}

// look is how often a reader of Main looks for output that native code keeps
// back, and for the end of a session whose descriptors are held by others.
const look = 250 * time.Millisecond

// next returns the next line of Main. It calls quiet when nothing has come for a
// while. The end of the process wakes it: what that had said before is read
// first, and then the error is io.EOF, also when another process holds the other
// end of Main.
func (i *Interpreter) next(ctx context.Context, quiet func()) ([]byte, error) {
	for silent := 0; ; {
		if i.kept().leaves() { // what comes is the next host's: it stays where it is
			select {
			case <-ctx.Done():
			case <-i.done:
			}
			return nil, io.EOF
		}
		line, err := i.lines.Next()
		if !errors.Is(err, os.ErrDeadlineExceeded) || ctx.Err() != nil {
			if err == nil {
				i.trace(received, "main", line)
			}
			return line, err
		}
		if err := i.child.Main.SetReadDeadline(time.Now().Add(look)); err != nil {
			return nil, fmt.Errorf("read from the Python process: %w", err)
		}
		select {
		case <-i.done:
			if silent++; silent > 1 {
				return nil, io.EOF
			}
		default:
			quiet()
		}
	}
}

// tell writes a control request.
func (i *Interpreter) tell(ctx context.Context, r ndjson.Request) error {
	line, err := ndjson.AppendRequest(nil, r)
	if err != nil {
		return err
	}
	select {
	case i.writing <- struct{}{}:
		defer func() { <-i.writing }()
	case <-i.done:
		return i.err
	case <-ctx.Done():
		return fmt.Errorf("reach the Python process: %w", context.Cause(ctx))
	}
	if err := i.child.Control.SetWriteDeadline(writeBy(ctx)); err != nil {
		return i.unreachable(err)
	}
	i.trace(sent, "control", line)
	if err := i.sending.write(i.child.Control, line); err != nil {
		return i.unreachable(err)
	}
	return nil
}

// writeBy is the deadline of ctx, and in a few seconds when it has none: the socket
// takes thousands of control requests before it blocks.
func writeBy(ctx context.Context) time.Time {
	const most = 5 * time.Second
	latest := time.Now().Add(most)
	if d, ok := ctx.Deadline(); ok && d.Before(latest) {
		return d
	}
	return latest
}

func (i *Interpreter) unreachable(err error) error {
	if gone := i.Err(); gone != nil {
		return gone
	}
	return fmt.Errorf("reach the Python process: %w", err)
}

// ask sends a control request and waits until it is answered, ctx ends or the
// session does.
func (i *Interpreter) ask(ctx context.Context, r ndjson.Request) error {
	answer := make(chan struct{})
	i.mu.Lock()
	i.asked++
	r.N = i.asked
	i.answers[r.N] = answer
	i.mu.Unlock()
	defer func() {
		i.mu.Lock()
		delete(i.answers, r.N)
		i.mu.Unlock()
	}()
	if err := i.tell(ctx, r); err != nil {
		return err
	}
	select {
	case <-answer:
		return nil
	case <-i.done:
		return i.err
	case <-ctx.Done():
		return fmt.Errorf("the Python process did not answer: %w", context.Cause(ctx))
	}
}

// RSS returns the memory of the session: what its control group uses, with all
// processes that it has started; without one, what is resident of its process, what
// it shares with its fork server included.
func (i *Interpreter) RSS() int64 {
	if i.group != nil {
		if used := i.group.Usage().Memory; used >= 0 {
			return used
		}
	}
	if i.child.Inside() {
		return 0 // what it has of the sandbox's memory is not known
	}
	rss, err := process.RSS(i.info.PID)
	if err != nil {
		return 0
	}
	return rss
}

// AnswerInput answers an input request. An answer to nothing is dropped.
func (i *Interpreter) AnswerInput(ctx context.Context, id string, a messages.InputAnswer) error {
	r := ndjson.Request{Type: ndjson.TypeInput, Request: id}
	if a.Status == messages.InputAccepted {
		r.Value = &a.Value
	} else {
		r.Idle, r.Reason = a.Idle.Seconds(), a.Reason
	}
	err := i.tell(ctx, r)
	if err == nil {
		i.logged().Answered(id)
	}
	return err
}

var (
	_ kernel.Interpreter = (*Interpreter)(nil)
	_ kernel.Witness     = (*Interpreter)(nil)
)
