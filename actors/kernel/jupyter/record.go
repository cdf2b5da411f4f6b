package jupyter

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/estate"
	"github.com/coppice-run/coppice/internal/jupyter"
	"github.com/coppice-run/coppice/internal/sharedgateway"
	"github.com/coppice-run/coppice/messages"
)

// book is where it is written down what the calls of a session come to. Except where it says
// otherwise, a field belongs to the goroutine that runs the calls.
type book struct {
	log     *estate.Log          // not changed
	seal    []byte               // not changed
	claim   *sharedgateway.Claim // not changed
	earlier string               // why the session is not the one of an earlier host; not changed
	// last is what an earlier host has begun, until it is gone on with; from is what of it the cell in
	// hand is, nil for one that was begun here.
	last, from *estate.Running
	// cells is how many the call has, open whether it has not ended; any goroutine may read that.
	cells int
	open  atomic.Bool
	// at is the number of the message that the event in hand comes of, nth which of its events that is.
	at, nth int
	// gaps says that the earlier host has told of output that is missing.
	gaps bool
}

// newBook goes on with what an earlier host has written down under a seal of the last call, or begins
// anew where that is nil. earlier is why the session is not the one of an earlier host.
func newBook(claim *sharedgateway.Claim, seal []byte, last *estate.Running, earlier string) (*book, error) {
	b := &book{claim: claim, earlier: earlier, seal: seal, last: last}
	dir, name := claim.Log()
	var err error
	if last != nil {
		b.log, err = estate.Reopen(dir, name, seal, last)
		b.open.Store(true)
	} else {
		b.seal = estate.NewSeal()
		b.log, err = estate.Create(dir, name, b.seal)
	}
	return b, err
}

// key is that of the seal, nil without a book.
func (b *book) key() []byte {
	if b == nil {
		return nil
	}
	return b.seal
}

// close leaves the log to the next host, and removes it when the call in it has ended here: false.
func (b *book) close() bool {
	b.log.Freeze()
	b.log.Close()
	if b.open.Load() {
		return true
	}
	b.claim.DropLog()
	return false
}

// Begin begins a call.
func (b *book) Begin(exec messages.Execute, news *kernel.News) error {
	err := b.log.Begin(exec, (*estate.News)(news))
	if errors.Is(err, estate.ErrFrozen) {
		return kernel.ErrLeft
	}
	if err == nil {
		b.cells = len(exec.Cells)
		b.open.Store(true)
	}
	return err
}

// Output notes an event that the cell is about to hand on, in the goroutine of Execute.
func (b *book) Output(e messages.Event) { b.log.Output(e, b.place()) }

// Emitted notes another event.
func (b *book) Emitted(e messages.Event) { b.log.Emitted(e) }

// Ended notes the result of a cell. The call ends with its last cell, or with one that has failed.
func (b *book) Ended(cell int, result messages.CellResult) {
	b.log.Ended(cell, result)
	if cell == b.cells-1 || result.Outcome != messages.OutcomeOK {
		b.open.Store(false)
	}
}

// Stopped notes that the call is to end.
func (b *book) Stopped(cause messages.InterruptCause) { b.log.Stopped(cause) }

// Resume returns how far the call of an earlier host came.
func (b *book) Resume(each func(messages.Event) error) (*kernel.Resumption, error) {
	last := b.last
	switch {
	case last == nil && b.earlier != "":
		return nil, errors.New(b.earlier)
	case last == nil:
		return nil, errors.New("it is not noted")
	}
	dir, name := b.claim.Log()
	_, err := estate.Read(dir, name, b.seal, func(e messages.Event) error {
		n, is := e.(messages.Notice)
		b.gaps = b.gaps || is && tellsLoss(n.Code)
		return each(e)
	})
	if err != nil {
		return nil, err
	}
	b.cells = len(last.Exec.Cells)
	b.open.Store(len(last.Ended) < b.cells && (len(last.Ended) == 0 || last.Ended[len(last.Ended)-1].Outcome == messages.OutcomeOK))
	if !last.Begun {
		b.last = nil
	}
	return &kernel.Resumption{
		Ended: last.Ended, Begun: last.Begun, Said: last.Said, Over: last.Over, Bare: last.Bare, Full: last.Full, Stop: last.Stop,
	}, nil
}

// tellsLoss says whether the code of a notice is one of output that is missing.
func tellsLoss(code string) bool {
	switch code {
	case jupyter.NoticeConnection, jupyter.NoticeRateLimited, jupyter.NoticeMalformed, jupyter.NoticeNotKept, jupyter.NoticeDropped, jupyter.NoticeIncomplete:
		return true
	}
	return false
}

// incomplete is why output of the cell in hand may be missing, with what an earlier host has told.
func (b *book) incomplete(why string) string {
	switch {
	case why != "" || b == nil || b.from == nil:
		return why
	case b.gaps:
		return "output of the cell was lost while it ran with an earlier host"
	case b.from.Exec.Comms: // it has no numbers
		return "what its objects said to a frontend while there was no host may be missing"
	}
	return ""
}

// place is where the event in hand comes from. What comes of no message has no place.
func (b *book) place() estate.Place {
	if b.at == 0 {
		return estate.Place{}
	}
	return estate.Place{Frame: uint64(b.at), Nth: b.nth} //nolint:gosec // it is not negative
}

// placed notes that what comes is of a message with a number; 0: of none, and then of the last
// one that had one.
func (b *book) placed(number int64) {
	if n := int(number); n > b.at {
		b.at, b.nth = n, 0
	}
}

// fresh counts an event, and reports whether no earlier host has handed it on. A question
// is asked again.
func (b *book) fresh(e messages.Event) bool {
	b.nth++
	if b.from == nil || b.at == 0 || uint64(b.at) != b.from.At.Frame { //nolint:gosec // it is not negative
		return true
	}
	if _, asks := e.(messages.InputRequest); asks {
		b.nth = max(b.nth, b.from.At.Nth+1)
	}
	return b.nth > b.from.At.Nth
}

type (
	execute = func(context.Context, jupyter.ExecuteRequest, func(context.Context, messages.Event) error) (jupyter.ExecuteReply, error)
	emitter = func(context.Context, messages.Event) error
)

// cell returns how a kernel runs a cell so that another host can go on with it, and what its output
// goes to. One of an earlier host is gone on with. Without a book, it is run.
func (b *book) cell(r kernel.CellRequest, k *jupyter.Kernel, emit emitter) (execute, jupyter.ExecuteRequest, emitter) {
	request := jupyter.ExecuteRequest{Code: r.Code, AllowStdin: r.AllowStdin, StoreHistory: r.Count, Comms: r.Comms}
	if b == nil || r.Index < 0 {
		return k.Execute, request, emit
	}
	run := k.Execute
	b.from, b.at, b.nth = nil, 0, 0
	if r.Resume {
		run, b.from, b.last = k.Resume, b.last, nil
		if b.from != nil && b.from.At.Frame > 0 {
			b.at, b.nth = int(b.from.At.Frame), 1 //nolint:gosec // it was one
		}
	}
	request.Keep, request.Placed = true, b.placed
	request.Announce = func(id string) error { return b.log.Sent(r.Index, id) }
	return run, request, func(ctx context.Context, e messages.Event) error {
		if !b.fresh(e) {
			return nil
		}
		if q, asks := e.(messages.InputRequest); asks { // whether it is open, the kernel knows
			b.log.Asked(estate.Question{Request: q.ID, Prompt: q.Prompt, Password: q.Password}, b.place())
		}
		return emit(ctx, e)
	}
}

var _ kernel.Record = (*book)(nil)
