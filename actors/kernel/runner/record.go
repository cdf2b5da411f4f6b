package runner

import (
	"context"
	"errors"

	"github.com/coppice-run/coppice/actors/kernel"
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
