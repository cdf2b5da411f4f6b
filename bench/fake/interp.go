package fake

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/messages"
)

// ledger is what interpreters are seen to do.
type ledger struct {
	mu     sync.Mutex
	last   map[string]uint64 // guarded by mu: the last call that ran, by session
	alive  map[string]int    // guarded by mu: living interpreters, by session
	wrongs []string          // guarded by mu: the first hundred
	count  int               // guarded by mu: all of them

	made, died atomic.Int64
}

func (l *ledger) wrong(format string, args ...any) {
	if l.count++; len(l.wrongs) < 100 {
		l.wrongs = append(l.wrongs, fmt.Sprintf(format, args...))
	}
}

// ran notes that a call runs.
func (l *ledger) ran(session string, call uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch last := l.last[session]; {
	case call == last:
		l.wrong("%s: call %d ran twice", session, call)
	case call < last:
		l.wrong("%s: call %d ran after call %d", session, call, last)
	default:
		l.last[session] = call
	}
}

func (l *ledger) up(session string) {
	l.made.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.alive[session]++; l.alive[session] > 1 {
		l.wrong("%s has %d interpreters", session, l.alive[session])
	}
}

func (l *ledger) down(session string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.alive[session]--; l.alive[session] == 0 {
		delete(l.alive, session)
	}
}

// backend makes interpreters.
type backend struct{ ledger *ledger }

// Name is what results carry.
func (backend) Name() string { return "fake" }

// Start makes an interpreter, at once.
func (b backend) Start(ctx context.Context, o kernel.StartOptions) (kernel.Interpreter, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	i := &interp{ledger: b.ledger, session: o.Key.Session, done: make(chan struct{})}
	b.ledger.up(i.session)
	return i, nil
}

// interp is a pretended interpreter.
type interp struct {
	ledger  *ledger
	session string
	once    sync.Once
	done    chan struct{}
	err     error // set before done is closed
}

// Info says that it has no process.
func (i *interp) Info() kernel.Info { return kernel.Info{ID: "fake"} }

// Execute does what the code says: see the package.
func (i *interp) Execute(ctx context.Context, r kernel.CellRequest, emit func(context.Context, messages.Event) error) (kernel.CellReply, error) {
	number, code, _ := strings.Cut(r.Code, " ")
	call, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return kernel.CellReply{}, fmt.Errorf("a call without a number: %w", err)
	}
	i.ledger.ran(i.session, call)
	if code == "die" {
		i.ledger.died.Add(1)
		i.end(&kernel.LostError{Reason: "the interpreter died"})
		return kernel.CellReply{}, i.err
	}
	text := "2"
	if _, err := strconv.Atoi(code); err == nil {
		text = code
	}
	if err := emit(ctx, messages.Stream{Name: messages.StdoutStream, Text: text}); err != nil {
		return kernel.CellReply{}, err
	}
	return kernel.CellReply{OK: true}, nil
}

// Interrupt does nothing: no cell lasts.
func (i *interp) Interrupt(context.Context) error { return nil }

// AnswerInput drops the answer: no code asks.
func (i *interp) AnswerInput(context.Context, string, messages.InputAnswer) error { return nil }

// Ping says whether it lives.
func (i *interp) Ping(context.Context) error {
	select {
	case <-i.done:
		return i.err
	default:
		return nil
	}
}

// Look sees whether it lives, as the runner's interpreters are looked at from outside.
func (i *interp) Look() (kernel.Sight, error) {
	return kernel.Sight{Alone: true}, i.Ping(context.Background())
}

// RSS is not known.
func (i *interp) RSS() int64 { return 0 }

// Done is closed when it has ended.
func (i *interp) Done() <-chan struct{} { return i.done }

// Err says why it has ended.
func (i *interp) Err() error { <-i.done; return i.err }

// Close ends it.
func (i *interp) Close(context.Context) error { i.end(context.Canceled); return nil }

func (i *interp) end(err error) {
	i.once.Do(func() {
		i.err = err
		i.ledger.down(i.session)
		close(i.done)
	})
}
