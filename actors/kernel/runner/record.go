package runner

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/custody"
	"github.com/coppice-run/coppice/internal/estate"
	"github.com/coppice-run/coppice/internal/ndjson"
	"github.com/coppice-run/coppice/messages"
)

// Record returns where it is written down what the session's calls have come to; nil: the
// session ends with its host.
func (i *Interpreter) Record() kernel.Record {
	if i.kept() == nil {
		return nil
	}
	return record{i}
}

// Leaving reports whether Close leaves the session to the next host.
func (i *Interpreter) Leaving() bool { return i.kept().leaves() }

// EndForGood has Close not leave the session to the next host.
func (i *Interpreter) EndForGood() {
	if h := i.kept(); h != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.closing = true
	}
}

// record is the log of a session, as the actor sees it.
type record struct{ i *Interpreter }

// Begin begins a call. The next host knows it by its log, and whose it is, before the note says
// so, too.
func (r record) Begin(exec messages.Execute, news *kernel.News) error {
	err := r.i.kept().log.Begin(exec, (*estate.News)(news))
	if errors.Is(err, estate.ErrFrozen) {
		return kernel.ErrLeft
	}
	if err == nil {
		r.i.kept().use(exec.Owner)
	}
	return err
}

// Output notes an event that the cell is about to hand on. It is called by emit, in the
// goroutine of Execute.
func (r record) Output(e messages.Event) { r.i.kept().log.Output(e, r.i.at) }

// Emitted notes another event.
func (r record) Emitted(e messages.Event) { r.i.kept().log.Emitted(e) }

// Ended notes the result of a cell.
func (r record) Ended(cell int, result messages.CellResult) { r.i.kept().log.Ended(cell, result) }

// Stopped notes that the call is to end.
func (r record) Stopped(cause messages.InterruptCause) { r.i.kept().log.Stopped(cause) }

// Resume returns how far the call of an earlier host came.
func (r record) Resume(each func(messages.Event) error) (*kernel.Resumption, error) {
	h := r.i.kept()
	last := h.last
	if last == nil {
		return nil, errors.New("it is not noted")
	}
	// Nothing was written meanwhile: what is read is what was taken over.
	if _, err := estate.Read(h.from.Dir(), h.note.Log, h.note.Seal, each); err != nil {
		return nil, err
	}
	return &kernel.Resumption{
		Ended: last.Ended, Begun: last.Begun, Said: last.Said, Over: last.Over, Bare: last.Bare, Full: last.Full, Stop: last.Stop,
	}, nil
}

// resume goes on with a cell of an earlier host, from where that came to.
func (c *cell) resume() {
	c.begun = c.from.At.Frame > 0
	c.reply.Error = c.from.Failure
	c.stderr.add(c.from.Stderr)
	c.late = c.from.At.Late
	for at, half := range c.from.Halves {
		c.raw[at], c.halved = ndjson.TextAfter(half), true
	}
}

// streams are those of a session, as cell.raw has them.
var streams = [estate.Streams]messages.StreamName{messages.StdoutStream, messages.StderrStream}

// halves notes that the frame in hand was taken, when it ends within a character or an
// earlier one did.
func (c *cell) halves() {
	half := [estate.Streams][]byte{c.raw[0].Half(), c.raw[1].Half()}
	if now := len(half[0])+len(half[1]) > 0; now || c.halved {
		c.i.logged().Halves(half, estate.Place{Frame: c.seq, Nth: c.nth, Late: c.late})
		c.halved = now
	}
}

// askAgain asks again what the code waits for an answer to, and has its calls of the
// earlier host's functions fail: no one knows how far they came.
func (c *cell) askAgain(ctx context.Context) {
	for _, call := range c.from.Calls {
		c.i.answerCall(call, messages.HostResult{Error: &messages.HostError{
			Type: "HostCallError", Message: "the host that ran the function has ended; whether it ran, and how far, is not known",
		}})
	}
	for _, q := range c.from.Questions {
		c.dropped = c.emit(ctx, messages.InputRequest{ID: q.Request, Prompt: q.Prompt, Password: q.Password})
	}
}

// fresh reports whether an event of the frame in hand is to be handed on: an earlier host
// has not. It counts it.
func (c *cell) fresh() bool {
	c.nth++
	if c.from != nil && c.seq == c.from.At.Frame && c.nth <= c.from.At.Nth {
		return false
	}
	c.i.at = estate.Place{Frame: c.seq, Nth: c.nth, Late: c.late}
	return true
}

// mark is where the frame in hand stands, for what is noted of it besides events.
func (c *cell) mark() estate.Place { return estate.Place{Frame: c.seq, Nth: c.nth + 1, Late: c.late} }

// question hands on that code waits for a line.
func (c *cell) question(ctx context.Context, f ndjson.Frame) {
	c.i.logged().Asked(estate.Question{Request: f.Request, Prompt: f.Prompt, Password: f.Password}, c.mark())
	c.out(ctx, messages.InputRequest{ID: f.Request, Prompt: f.Prompt, Password: f.Password})
}

// logged returns the log of a session that outlives its host; a log that is not there
// takes nothing.
func (i *Interpreter) logged() *estate.Log {
	if i.kept() == nil {
		return nil
	}
	return i.kept().log
}

var _ kernel.Recorded = (*Interpreter)(nil)

// kept is a session that outlives its host, as its interpreter knows it.
type kept struct {
	keeper *keeper
	from   *custody.Custody
	name   string
	log    *estate.Log

	mu      sync.Mutex
	note    estate.Note // guarded by mu
	closing bool        // it ends for good, also when the host leaves; guarded by mu
	dropped bool        // guarded by mu
	// last is what an earlier host has begun; it belongs to who resumes it.
	last *estate.Running
}

// kept is how the session outlives its host; nil: it does not.
func (i *Interpreter) kept() *kept { return i.held.Load() }

// letGo has the session's custodian let go of a session that has ended.
func (i *Interpreter) letGo() {
	i.mu.Lock()
	i.over = true
	h := i.kept()
	i.mu.Unlock()
	if h != nil {
		h.keeper.ends.Go(h.drop)
	}
}

// discard closes and removes the log.
func (h *kept) discard() {
	h.log.Close()
	_ = os.Remove(filepath.Join(h.from.Dir(), h.note.Log)) // it ends with the folder at the latest
}

// generation is how many hosts have had the session before.
func (h *kept) generation() uint32 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.note.Generation
}

// use notes who uses the session, and that a call has begun, whose log has the news then.
func (h *kept) use(owner string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.note.Owners
	h.note.Owners = withOwner(before, owner)
	if news := h.note.News; news != nil || len(h.note.Owners) > len(before) {
		h.note.News = nil
		h.tell()
	}
}

// withOwner returns those who use a session and one more, if there is room.
func withOwner(owners []string, owner string) []string {
	if slices.Contains(owners, owner) || len(owners) == estate.MaxOwners {
		return owners
	}
	return append(slices.Clip(owners), owner)
}

// tell has the custodian know the note. h.mu is held.
func (h *kept) tell() {
	note, err := h.note.Encode()
	if err != nil {
		return // it is as it was
	}
	c, cancel := context.WithTimeout(context.Background(), custodyWait)
	defer cancel()
	_ = h.from.Note(c, h.name, note) // without a custodian there is nothing to tell
}

// leaves reports whether the session is left to the next host when it is closed.
func (h *kept) leaves() bool {
	if h == nil || !h.keeper.leaving.Load() {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.closing && !h.dropped
}

// errLeft is the end of an interpreter whose session goes on with the next host.
var errLeft = &kernel.LostError{Reason: "the session was left to the next host"}

func (i *Interpreter) isLeft() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.left
}

// drop has the session end with this host. Calls after the first do nothing.
func (h *kept) drop() {
	if h == nil {
		return
	}
	h.mu.Lock()
	again := h.dropped
	h.dropped = true
	h.mu.Unlock()
	if again {
		return
	}
	c, cancel := context.WithTimeout(context.Background(), custodyWait)
	defer cancel()
	_ = h.from.Drop(c, h.name) // a custodian that has ended keeps nothing
	h.discard()
	k := h.keeper
	k.mu.Lock()
	if i := k.sessions[h.name]; i != nil && i.kept() == h {
		delete(k.sessions, h.name)
	}
	k.mu.Unlock()
	k.release(h.from)
}
