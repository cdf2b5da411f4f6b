package jupyter

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/estate"
	"github.com/coppice-run/coppice/internal/jupyter"
	"github.com/coppice-run/coppice/messages"
)

// book is where it is written down what the calls of a session come to. Except where it says
// otherwise, a field belongs to the goroutine that runs the calls.
type book struct {
	log  *estate.Log // not changed
	seal []byte      // not changed
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

// openBook begins to write down what the session's calls come to, or goes on with what an earlier
// host has written under a seal. Where that cannot be, they end with this host.
func (i *Interpreter) openBook(seal []byte) {
	if !i.records || !i.python || !i.kernel.Replays() {
		i.claim.DropLog()
		return
	}
	b := &book{seal: seal, last: i.heir}
	i.heir = nil
	dir, name := i.claim.Log()
	var err error
	if b.last != nil {
		b.log, err = estate.Reopen(dir, name, seal, b.last)
		b.open.Store(true)
	} else {
		b.seal = estate.NewSeal()
		b.log, err = estate.Create(dir, name, b.seal)
	}
	if err == nil {
		i.book.Store(b)
	}
}

// seal is the key of the seal of the session's log, nil when there is none.
func (i *Interpreter) seal() []byte {
	if b := i.book.Load(); b != nil {
		return b.seal
	}
	return nil
}

// closeBook leaves the log to the next host, or removes it when the call in it has ended here.
func (i *Interpreter) closeBook() {
	b := i.book.Load()
	if b == nil {
		return
	}
	b.log.Freeze()
	b.log.Close()
	if !b.open.Load() {
		i.book.Store(nil)
		i.claim.DropLog()
	}
}

// Record returns where it is written down what the session's calls have come to; nil: they end
// with the host.
func (i *Interpreter) Record() kernel.Record {
	b := i.book.Load()
	if b == nil || !i.outlives.Load() {
		return nil
	}
	return record{i, b}
}

// record is the book of a session, as the actor sees it.
type record struct {
	i *Interpreter
	b *book
}

// Begin begins a call.
func (r record) Begin(exec messages.Execute, news *kernel.News) error {
	err := r.b.log.Begin(exec, (*estate.News)(news))
	if errors.Is(err, estate.ErrFrozen) {
		return kernel.ErrLeft
	}
	if err == nil {
		r.b.cells = len(exec.Cells)
		r.b.open.Store(true)
	}
	return err
}

// Output notes an event that the cell is about to hand on, in the goroutine of Execute.
func (r record) Output(e messages.Event) { r.b.log.Output(e, r.b.place()) }

// Emitted notes another event.
func (r record) Emitted(e messages.Event) { r.b.log.Emitted(e) }

// Ended notes the result of a cell. The call ends with its last cell, or with one that has failed.
func (r record) Ended(cell int, result messages.CellResult) {
	r.b.log.Ended(cell, result)
	if cell == r.b.cells-1 || result.Outcome != messages.OutcomeOK {
		r.b.open.Store(false)
	}
}

// Stopped notes that the call is to end.
func (r record) Stopped(cause messages.InterruptCause) { r.b.log.Stopped(cause) }

// Resume returns how far the call of an earlier host came.
func (r record) Resume(each func(messages.Event) error) (*kernel.Resumption, error) {
	last := r.b.last
	switch {
	case last == nil && r.i.info.Earlier != "":
		return nil, errors.New(r.i.info.Earlier)
	case last == nil:
		return nil, errors.New("it is not noted")
	}
	dir, name := r.i.claim.Log()
	_, err := estate.Read(dir, name, r.b.seal, func(e messages.Event) error {
		n, is := e.(messages.Notice)
		r.b.gaps = r.b.gaps || is && tellsLoss(n.Code)
		return each(e)
	})
	if err != nil {
		return nil, err
	}
	r.b.cells = len(last.Exec.Cells)
	r.b.open.Store(len(last.Ended) < r.b.cells && (len(last.Ended) == 0 || last.Ended[len(last.Ended)-1].Outcome == messages.OutcomeOK))
	if !last.Begun {
		r.b.last = nil
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
func (i *Interpreter) incomplete(why string) string {
	b := i.book.Load()
	if why != "" || b == nil || b.from == nil || !b.gaps {
		return why
	}
	return "output of the cell was lost while it ran with an earlier host"
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

// noting returns how a cell is run so that another host can go on with it, and what its output
// goes through before it is handed on. One of an earlier host is gone on with.
func (i *Interpreter) noting(r kernel.CellRequest) (run execute, request jupyter.ExecuteRequest, take func(emitter) emitter) {
	request = jupyter.ExecuteRequest{Code: r.Code, AllowStdin: r.AllowStdin, StoreHistory: r.Count, Comms: r.Comms}
	b := i.book.Load()
	if b == nil || r.Index < 0 {
		return i.kernel.Execute, request, func(emit emitter) emitter { return emit }
	}
	run, b.from, b.at, b.nth = i.kernel.Execute, nil, 0, 0
	if r.Resume {
		run, b.from, b.last = i.kernel.Resume, b.last, nil
		if b.from != nil && b.from.At.Frame > 0 {
			b.at, b.nth = int(b.from.At.Frame), 1 //nolint:gosec // it was one
		}
	}
	request.Keep, request.Placed = true, b.placed
	request.Announce = func(id string) error { return b.log.Sent(r.Index, id) }
	return run, request, func(emit emitter) emitter {
		return func(ctx context.Context, e messages.Event) error {
			if !b.fresh(e) {
				return nil
			}
			if q, asks := e.(messages.InputRequest); asks {
				b.log.Asked(estate.Question{Request: q.ID, Prompt: q.Prompt, Password: q.Password}, b.place())
			}
			return emit(ctx, e)
		}
	}
}

// catchUp gives a kernel that ran on what it needs of this host.
func (i *Interpreter) catchUp(ctx context.Context) error {
	if i.late == "" {
		return nil
	}
	if _, err := i.silently(ctx, i.late); err != nil {
		return fmt.Errorf("take over the session's kernel: %w", err)
	}
	i.late = ""
	return nil
}
