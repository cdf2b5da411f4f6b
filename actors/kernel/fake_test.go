package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/messages"
)

// fakeBackend makes interpreters that obey one-word programs. It counts what is
// alive, so that a test can see what was left behind.
type fakeBackend struct {
	looked bool // its interpreters can be looked at

	startDelay time.Duration
	closeDelay time.Duration // how long an interpreter takes to end
	startErr   error
	// waits is what a start waits for before startDelay, one after the other.
	waits []wait

	mu    sync.Mutex
	all   []*fakeInterp
	alive int
}

func (b *fakeBackend) Name() string { return "fake" }

// wait is a part of a start.
type wait struct {
	kernel.Waiting
	lasts time.Duration
}

func (b *fakeBackend) Start(ctx context.Context, o kernel.StartOptions) (kernel.Interpreter, error) {
	for _, w := range b.waits {
		o.Waiting(w.Waiting)
		select {
		case <-time.After(w.lasts):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	o.Waiting(kernel.Waiting{})
	select {
	case <-time.After(b.startDelay):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if b.startErr != nil {
		return nil, b.startErr
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	i := &fakeInterp{backend: b, done: make(chan struct{}), interrupts: make(chan struct{}, 8), answers: make(chan answer, 8), left: make(chan messages.HostResult, 8), epoch: o.Epoch}
	b.all = append(b.all, i)
	b.alive++
	if b.looked {
		return &lookedAt{fakeInterp: i}, nil
	}
	return i, nil
}

// lookedAt is one of which it can be seen that it could answer, unless it is stopped.
type lookedAt struct{ *fakeInterp }

func (i *lookedAt) Look() (kernel.Sight, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.looks++
	if i.silent {
		return kernel.Sight{}, errors.New("stopped")
	}
	return kernel.Sight{RSS: 1 << 20, Alone: !i.busy}, nil
}

func (b *fakeBackend) living() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.alive
}

func (b *fakeBackend) last() *fakeInterp {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.all) == 0 {
		return nil
	}
	return b.all[len(b.all)-1]
}

type fakeInterp struct {
	backend    *fakeBackend
	epoch      uint64
	interrupts chan struct{}
	answers    chan answer
	left       chan messages.HostResult // of calls that were not waited for
	once       sync.Once
	done       chan struct{}
	err        error // set before done is closed

	ended   atomic.Bool
	weighed atomic.Int64 // how often its memory was asked for
	grown   atomic.Int64 // what it has grown by
	starved atomic.Int64 // how long it has no processor after it is first looked at

	mu          sync.Mutex
	counter     int
	hungryUntil time.Time
	silent      bool // does not answer pings
	busy        bool // something runs in it between calls
	pings       int
	looks       int
	request     kernel.CellRequest // the last one
}

func (i *fakeInterp) Info() kernel.Info     { return kernel.Info{ID: "fake", PID: 1000 + int(i.epoch)} }
func (i *fakeInterp) RSS() int64            { i.weighed.Add(1); return 1<<20 + i.grown.Load() }
func (i *fakeInterp) Done() <-chan struct{} { return i.done }
func (i *fakeInterp) Err() error            { <-i.done; return i.err }

func (i *fakeInterp) Ended() bool { return i.ended.Load() }

func (i *fakeInterp) end(err error) {
	i.once.Do(func() {
		i.err = err
		i.backend.mu.Lock()
		i.backend.alive--
		i.backend.mu.Unlock()
		close(i.done)
	})
}

func (i *fakeInterp) die() { i.end(&kernel.LostError{Reason: "the kernel process died"}) }

func (i *fakeInterp) Close(context.Context) error {
	<-time.After(i.backend.closeDelay)
	i.end(context.Canceled)
	return nil
}

func (i *fakeInterp) Interrupt(context.Context) error {
	select {
	case i.interrupts <- struct{}{}:
	default:
	}
	return nil
}

func (i *fakeInterp) AnswerInput(_ context.Context, id string, a messages.InputAnswer) error {
	i.answers <- answer{id, a}
	return nil
}

func (i *fakeInterp) Ping(ctx context.Context) error {
	i.mu.Lock()
	i.pings++
	silent := i.silent
	i.mu.Unlock()
	var soon <-chan time.Time
	if !silent {
		soon = time.After(time.Until(i.hungry()))
	}
	select {
	case <-soon:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// starve takes the processor away for so long, from now on.
func (i *fakeInterp) starve(d time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.hungryUntil = time.Now().Add(d)
}

func (i *fakeInterp) hungry() time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.hungryUntil
}

// Execute obeys statements with a semicolon between them: count, print TEXT,
// backlog TEXT, raise, sleep DURATION, hang, swallow, die, exit, input; those of
// fake_host_test.go besides.
func (i *fakeInterp) Execute(ctx context.Context, r kernel.CellRequest, emit func(context.Context, messages.Event) error) (kernel.CellReply, error) {
	for len(i.interrupts) > 0 {
		<-i.interrupts
	}
	i.mu.Lock()
	i.request = r
	i.mu.Unlock()
	for statement := range strings.SplitSeq(r.Code, "; ") {
		reply, err := i.obey(ctx, r, emit, statement)
		if reply != nil || err != nil {
			if reply == nil {
				reply = &kernel.CellReply{}
			}
			return *reply, err
		}
	}
	select {
	case <-i.done:
		return kernel.CellReply{}, i.err
	default:
		return kernel.CellReply{OK: true}, nil
	}
}

// obey runs one statement. A reply or an error ends the cell.
func (i *fakeInterp) obey(ctx context.Context, r kernel.CellRequest, emit func(context.Context, messages.Event) error, statement string) (*kernel.CellReply, error) {
	say := func(text string) error {
		return emit(ctx, messages.Stream{Name: messages.StdoutStream, Text: text})
	}
	word, rest, _ := strings.Cut(statement, " ")
	switch word {
	case "count":
		i.mu.Lock()
		i.counter++
		n := i.counter
		i.mu.Unlock()
		return nil, say(fmt.Sprint(n))
	case "print":
		if err := say(rest); !errors.Is(err, kernel.ErrEnough) {
			return nil, err
		}
		return nil, nil
	case "backlog": // it has ended, and goes on to hand over
		i.ended.Store(true)
		defer i.ended.Store(false)
		for range 1000 {
			switch err := say(rest); {
			case errors.Is(err, kernel.ErrEnough):
				return &kernel.CellReply{Interrupted: true, Incomplete: "the end was left out"}, nil
			case err != nil:
				return nil, err
			}
		}
		return nil, nil
	case "raise":
		d := messages.ErrorDetails{Name: "ValueError", Message: "boom"}
		_ = emit(ctx, messages.Error{ErrorDetails: d})
		return &kernel.CellReply{Error: &d}, nil
	case "input":
		return &kernel.CellReply{StdinRequested: true, Error: &messages.ErrorDetails{Name: "StdinNotImplementedError"}}, nil
	case "exit":
		i.end(&kernel.LostError{Reason: "exit"})
		return &kernel.CellReply{OK: true, Exited: true}, nil
	case "die":
		i.die()
		return nil, i.err
	case "sleep":
		d, err := time.ParseDuration(rest)
		if err != nil {
			return nil, err
		}
		return i.until(ctx, time.After(d))
	case "hang":
		return i.until(ctx, nil)
	case "swallow":
		for {
			if reply, err := i.until(ctx, nil); err != nil || reply == nil {
				return reply, err
			}
		}
	default:
		return i.host(ctx, r, emit, word, rest)
	}
}

func (i *fakeInterp) Subject() opportunity.Subject { return &fakeSubject{i, time.Now()} }

// fakeSubject wants a processor and gets none for as long as its interpreter says.
type fakeSubject struct {
	i     *fakeInterp
	begun time.Time
}

func (s *fakeSubject) Look(now time.Time) (opportunity.Sample, error) {
	starved := max(time.Duration(s.i.starved.Load()), s.i.hungry().Sub(s.begun))
	if passed := now.Sub(s.begun); passed < starved {
		return opportunity.Sample{Pending: passed, Known: opportunity.Waits}, nil
	}
	return opportunity.Sample{Waited: starved, Known: opportunity.Waits}, nil
}

// until waits for over, as code does that can be interrupted.
func (i *fakeInterp) until(ctx context.Context, over <-chan time.Time) (*kernel.CellReply, error) {
	select {
	case <-over:
		return nil, nil
	case <-i.interrupts:
		reply := interrupted()
		return &reply, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-i.done:
		return nil, i.err
	}
}

func interrupted() kernel.CellReply {
	return kernel.CellReply{Interrupted: true, Error: &messages.ErrorDetails{Name: "KeyboardInterrupt"}}
}

// fakeOutlet keeps what a call emits. While block is not nil, Emit waits with
// output for it to be closed. flush is how long Flush takes.
type fakeOutlet struct {
	block   chan struct{}
	flush   time.Duration
	hurried func()

	mu     sync.Mutex
	events []messages.Event
}

func (o *fakeOutlet) Hurry() {
	if o.hurried != nil {
		o.hurried()
	}
}

func (o *fakeOutlet) Emit(ctx context.Context, e messages.Event) error {
	if _, output := e.(messages.Stream); output && o.block != nil {
		select {
		case <-o.block:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events = append(o.events, e)
	return nil
}

func (o *fakeOutlet) Flush(ctx context.Context) messages.Output {
	var out messages.Output
	select {
	case <-time.After(o.flush):
	case <-ctx.Done():
		out.Lost = context.Cause(ctx).Error()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	text := map[int]string{}
	for _, e := range o.events {
		if s, ok := e.(messages.Stream); ok {
			text[s.Cell] += s.Text
		}
	}
	for i, t := range text {
		out.Cells = append(out.Cells, messages.CellOutput{Index: i, Text: t})
	}
	return out
}

func (o *fakeOutlet) types() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var names []string
	for _, e := range o.events {
		name := e.Type()
		if s, ok := e.(messages.Status); ok {
			name += ":" + string(s.Status)
		}
		names = append(names, name)
	}
	return names
}
