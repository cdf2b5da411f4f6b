package sim_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// Programs that a cell may hold: the word, and how long it takes.
const (
	progRun     = "run"     // runs for the time, ends at an interrupt
	progRaise   = "raise"   // raises after the time
	progHang    = "hang"    // runs until it is interrupted
	progDeaf    = "deaf"    // runs for the time, whatever interrupts it
	progSwallow = "swallow" // runs for ever, whatever interrupts it
	progDie     = "die"     // its interpreter dies after the time
	progExit    = "exit"    // ends its own interpreter after the time
	progFreeze  = "freeze"  // stops answering anything for ever
)

func program(word string, d time.Duration) messages.Cell {
	return messages.Cell{Code: word + " " + d.String()}
}

var errClosed = errors.New("closed")

// interp is an interpreter without Python: it counts the cells that it runs.
// The fields below mu are guarded by the world's lock.
type interp struct {
	w     *world
	at    *place
	id    int           // which start of its place it is
	close time.Duration // how long the end takes

	interrupts chan struct{}
	done       chan struct{}

	// mu: the world's.
	counter   int
	running   *ran
	upAt      time.Duration
	firstAt   time.Duration // when it began its first cell
	touchedAt time.Duration // when it began its last cell
	closing   bool
	closingAt time.Duration
	silent    bool // answers no ping
	stray     bool // its place has another one by now
	gone      bool
	goneAt    time.Duration
	err       error
	announced bool // a result called its state lost
}

func (i *interp) Info() kernel.Info {
	return kernel.Info{ID: fmt.Sprintf("%s#%d", i.at.name, i.id), PID: 100 + i.id, Python: "3.14"}
}
func (i *interp) RSS() int64            { return 1 << 20 }
func (i *interp) Done() <-chan struct{} { return i.done }

func (i *interp) Err() error {
	<-i.done
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	return i.err
}

// end makes the interpreter be gone. The world's lock is held.
func (i *interp) end(how string, err error) {
	if i.gone {
		return
	}
	i.gone, i.goneAt, i.err = true, i.w.now(), err
	if !i.stray {
		i.at.live = nil
	}
	if i.closing {
		i.at.ends += i.goneAt - i.closingAt
	}
	if i.counter > 0 {
		i.at.lostAt = i.goneAt
	}
	if i.at.recent != nil && !i.at.recent.answered {
		i.at.news = i.at.recent
	}
	i.w.alive--
	i.at.note(i.w, "gone: "+how, "", i.id)
	close(i.done)
}

func (i *interp) die() { i.end("died", &kernel.LostError{Reason: "the kernel process died"}) }

// Close ends the interpreter, which takes its time.
func (i *interp) Close(ctx context.Context) error {
	i.w.mu.Lock()
	if i.running != nil {
		i.w.breach(3, i.at, "interpreter %d is closed while it runs a cell", i.id)
	}
	if !i.closing && !i.gone {
		i.at.note(i.w, "closing", "", i.id)
		i.lingered()
		if i.close == 0 {
			i.end("closed", errClosed)
		} else {
			time.AfterFunc(i.close, func() {
				i.w.mu.Lock()
				defer i.w.mu.Unlock()
				i.end("closed", errClosed)
			})
		}
	}
	if !i.closing {
		i.closing, i.closingAt = true, i.w.now()
	}
	i.w.mu.Unlock()
	select {
	case <-i.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// lingered checks that the kernel of a single call is ended with the call. The
// world's lock is held.
func (i *interp) lingered() {
	rest, single := strings.CutPrefix(i.at.name, "call/") // see messages.SessionKey.CallID
	id, _, _ := strings.Cut(rest, "/")
	if c := i.w.calls[id]; single && c.answered && i.w.now() > max(c.at, i.upAt)+slack {
		i.w.breach(10, i.at, "its kernel is ended at %v, and %s was answered at %v", i.w.now(), id, c.at)
	}
}

// used checks a use with ctx. An actor ends the contexts of whatever it does
// with an interpreter before it closes that. The world's lock is held.
func (i *interp) used(ctx context.Context, what string) {
	if i.closing && ctx.Err() == nil {
		i.w.breach(3, i.at, "%s on interpreter %d, which is being closed", what, i.id)
	}
}

// Interrupt reaches the running cell.
func (i *interp) Interrupt(ctx context.Context) error {
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	i.used(ctx, "interrupt")
	if i.running == nil {
		return nil
	}
	i.at.note(i.w, "interrupt", "", i.id)
	select {
	case i.interrupts <- struct{}{}:
	default:
	}
	return nil
}

// AnswerInput is never asked for: no program reads.
func (i *interp) AnswerInput(context.Context, string, messages.InputAnswer) error { return nil }

// Ping answers, unless the interpreter is frozen or gone.
func (i *interp) Ping(ctx context.Context) error {
	i.w.mu.Lock()
	i.used(ctx, "ping")
	silent, gone := i.silent, i.gone
	i.w.mu.Unlock()
	switch {
	case gone:
		return errClosed
	case silent:
		<-ctx.Done()
		return context.Cause(ctx)
	}
	for at := i.heardAt(); at > i.w.now(); at = i.heardAt() {
		timer := time.NewTimer(at - i.w.now())
		select {
		case <-timer.C:
		case <-i.done:
			timer.Stop()
			return errClosed
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
	return nil
}

// Execute runs one cell. Its first output is what user code would see of the
// interpreter: who it is, and how many cells it has run.
func (i *interp) Execute(ctx context.Context, r kernel.CellRequest, emit func(context.Context, messages.Event) error) (kernel.CellReply, error) {
	rec, err := i.w.begin(ctx, i, r)
	if err != nil {
		return kernel.CellReply{}, err
	}
	if err := emit(ctx, messages.Stream{Name: messages.StdoutStream, Text: rec.text()}); err != nil {
		i.w.over(ctx, rec, "cut off")
		return kernel.CellReply{}, err
	}
	word, rest, _ := strings.Cut(r.Code, " ")
	d, err := time.ParseDuration(rest)
	if err != nil {
		return kernel.CellReply{}, fmt.Errorf("parse the program %q: %w", r.Code, err)
	}
	reply, how, err := i.play(ctx, word, d)
	i.w.over(ctx, rec, how)
	return reply, err
}

// play is the program itself. how is what became of the cell.
func (i *interp) play(ctx context.Context, word string, d time.Duration) (reply kernel.CellReply, how string, err error) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	end := timer.C
	if word == progHang || word == progSwallow || word == progFreeze {
		end = nil
	}
	if word == progFreeze {
		i.freeze()
	}
	for {
		select {
		case <-ctx.Done():
			return kernel.CellReply{}, "cut off", context.Cause(ctx)
		case <-i.done:
			return kernel.CellReply{}, "lost", i.Err()
		case <-i.interrupts:
			if word != progDeaf && word != progSwallow && word != progFreeze {
				return kernel.CellReply{Interrupted: true, Error: &messages.ErrorDetails{Name: "KeyboardInterrupt"}}, "interrupted", nil
			}
		case <-end:
			return i.ends(word)
		}
	}
}

func (i *interp) ends(word string) (kernel.CellReply, string, error) {
	switch word {
	case progRaise:
		return kernel.CellReply{Error: &messages.ErrorDetails{Name: "ValueError", Message: "as told"}}, "raised", nil
	case progDie:
		i.w.mu.Lock()
		i.die()
		i.w.mu.Unlock()
		return kernel.CellReply{}, "lost", i.Err()
	case progExit:
		i.w.mu.Lock()
		i.end("exit", &kernel.LostError{Reason: "exit"})
		i.w.mu.Unlock()
		return kernel.CellReply{OK: true, Exited: true}, "complete", nil
	default:
		return kernel.CellReply{OK: true}, "complete", nil
	}
}

func (i *interp) freeze() {
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	i.silent = true
	i.at.note(i.w, "frozen", "", i.id)
}

// evicted reports whether ctx ended because a strategy made room.
func evicted(ctx context.Context) bool {
	var exit supervisor.Exit
	return ctx.Err() != nil && errors.As(context.Cause(ctx), &exit) && exit.Kind == messages.ExitEvicted
}

var (
	_ kernel.Interpreter = (*interp)(nil)
	_ kernel.Witness     = (*interp)(nil)
)
