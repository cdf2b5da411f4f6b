package runner

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/ndjson"
	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/process"
)

// native is how long a session may take to answer before it is taken to run
// native code that holds the interpreter's lock, so that its side thread cannot.
const native = 500 * time.Millisecond

// nativeMost is how long that is when the session has no processor to answer with.
const nativeMost = 5 * time.Second

// Ping returns nil when the session's side thread answers. While a cell runs, it
// is enough that the process is there: native code that holds the interpreter's
// lock keeps every Python thread from answering, and is no reason to give a
// session up, unless it is stopped by a signal. How long it has to answer is for ctx: see [Interpreter.Subject].
func (i *Interpreter) Ping(ctx context.Context) error {
	soon := native
	if end, ok := ctx.Deadline(); ok {
		soon = min(soon, time.Until(end)/2)
	}
	c, cancel := context.WithTimeout(ctx, soon)
	err := i.ask(c, ndjson.Request{Type: ndjson.TypePing})
	cancel()
	switch gone := i.Err(); {
	case err == nil:
		return nil
	case gone != nil:
		return gone
	case ctx.Err() != nil:
		return err
	case i.busy() && !i.stopped():
		return nil
	}
	if err = i.ask(ctx, ndjson.Request{Type: ndjson.TypePing}); err == nil {
		return nil
	}
	if gone := i.Err(); gone != nil {
		return gone
	}
	return err
}

// ownThreads is how many threads a session has for itself: the one that runs cells, and the
// one that answers meanwhile.
const ownThreads = 2

// Look sees whether the session's process is there and not stopped. What is not seen is
// one whose threads wait for each other, which takes one that is not the session's own: it
// has to be asked.
func (i *Interpreter) Look() (kernel.Sight, error) {
	if i.child.Inside() {
		return kernel.Sight{}, i.Err() // what it has of the sandbox's memory is not known, nor its threads
	}
	is, err := process.Look(i.info.PID)
	if err != nil {
		return kernel.Sight{}, err
	}
	if is.Stopped {
		return kernel.Sight{}, fmt.Errorf("process %d was stopped by a signal", i.info.PID)
	}
	seen := kernel.Sight{RSS: is.RSS, Alone: is.Threads <= ownThreads}
	if is.RSS == 0 || i.group != nil {
		seen.RSS = i.RSS()
	}
	return seen, nil
}

// Subject is the session's process: nobody else has to pass its answers on.
func (i *Interpreter) Subject() opportunity.Subject {
	if i.child.Inside() {
		return i.child.Subject()
	}
	id, err := process.Identify(i.info.PID)
	if err != nil {
		return opportunity.Unknown{}
	}
	return opportunity.Processes(id)
}

// stopped says whether the session is stopped by a signal or a debugger: then it is not
// native code that silences it.
func (i *Interpreter) stopped() bool {
	if i.child.Inside() {
		return false // it cannot be seen
	}
	is, err := process.Look(i.info.PID)
	return err == nil && is.Stopped
}

func (i *Interpreter) busy() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.running != 0
}

// Interrupt raises KeyboardInterrupt in the cell that runs. The request names
// the cell, so that it can never hit the next one.
func (i *Interpreter) Interrupt(ctx context.Context) error {
	i.mu.Lock()
	cell := i.running
	i.mu.Unlock()
	if cell == 0 {
		return nil
	}
	c, done := opportunity.Within(ctx, opportunity.Budget{Opportunity: native, Ceiling: nativeMost}, i.Subject())
	defer done()
	err := i.ask(c, ndjson.Request{Type: ndjson.TypeInterrupt, ID: cell})
	if err == nil || ctx.Err() != nil || i.Err() != nil {
		return err
	}
	// The side thread cannot run. A signal reaches system calls of native code,
	// and the cell when that code returns.
	i.mu.Lock()
	same := i.running == cell
	i.mu.Unlock()
	if !same {
		return nil
	}
	return i.child.Signal(ctx, os.Interrupt)
}

// Steps of the end of a session.
const (
	// exitWait is how long an idle session has for its exit functions.
	exitWait = time.Second
	// exitMost is how long it has on a machine that has no processor for it.
	exitMost = 10 * time.Second
	// termWait is how long SIGTERM has.
	termWait = 500 * time.Millisecond
)

// Close ends the session, or leaves it to the next host, when this one leaves ([Server.Leave]);
// then nothing of the following is done. It makes an exit request while no cell runs, SIGTERM, SIGKILL,
// the last two to its process group. It returns nil when the process is gone. Of
// a cell that heeds no interrupt, this is the rest of the ladder:
//
//	SIGINT ─▶ grace ─▶ SIGTERM to the group ─▶ termWait ─▶ SIGKILL ─▶ gone
//	(package kernel)   (Close)
func (i *Interpreter) Close(ctx context.Context) error {
	leaves := i.kept().leaves()
	i.mu.Lock()
	first, idle := !i.closing, i.running == 0
	i.closing = true
	i.left = i.left || leaves && first
	i.mu.Unlock()
	switch {
	case first && leaves:
		_ = i.child.Control.Close() // the custodian has its own; what reads it ends
		_ = i.child.Main.SetDeadline(time.Unix(1, 0))
	case first:
		go i.end(idle) // ends with the process; Done is its join
	}
	select {
	case <-i.done:
		_ = i.child.Main.Close() // it must not be used any more
		return i.joinCalls(ctx)
	case <-ctx.Done():
		return fmt.Errorf("close the Python process %d: %w", i.child.PID(), context.Cause(ctx))
	}
}

// end takes the steps, until the process is gone.
func (i *Interpreter) end(idle bool) {
	ctx := context.Background()
	i.kept().drop() // a host that comes after this one does not find it
	if idle {
		line, err := ndjson.AppendRequest(nil, ndjson.Request{Type: ndjson.TypeQuit})
		if err == nil {
			_ = i.child.Main.SetWriteDeadline(time.Now().Add(exitWait))
			i.trace(sent, "main", line)
			_, err = i.child.Main.Write(line)
		}
		if err == nil && i.endedInTime() {
			return
		}
	}
	for {
		if err := i.child.Stop(ctx, process.StopOptions{Grace: termWait}); err == nil && i.ended(killWait) {
			return
		}
		// A session that never said who it is: without its descriptors it ends.
		_ = i.child.Main.Close()
		_ = i.child.Control.Close()
		if i.ended(time.Second) {
			return
		}
	}
}

// endedInTime waits until the end of the session is known, or it had exitWait of a
// processor, or a chance of one, to run its exit functions in.
func (i *Interpreter) endedInTime() bool {
	const soon = 100 * time.Millisecond // nearly all end in a few: a look at them would cost more
	if i.ended(soon) {
		return true
	}
	patience := opportunity.Budget{Opportunity: exitWait, Ceiling: exitMost}
	return opportunity.Wait(context.Background(), patience, opportunity.Begin(i.Subject(), nil), i.done) == nil
}

// ended waits until the end of the session is known.
func (i *Interpreter) ended(within time.Duration) bool {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-i.done:
		return true
	case <-timer.C:
		return false
	}
}
