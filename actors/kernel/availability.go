package kernel

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/process"
)

// Availability says whether the process that interpreters come from can be used, to
// those that wait for it. The goroutine that runs the process calls Begin, There,
// Ended and Close, any goroutine Await.
//
//	        Begin            There
//	away ─────────▶ coming ─────────▶ there
//	  ▲               │ Ended           │ Ended
//	  └───────────────┴─────────────────┘        Close, from everywhere ─▶ closed
//
// Whoever needs the process waits while it is coming or away: a start under way may
// succeed, and whoever runs the process tries again. A failure ends the wait when it
// says something about the process, and about now: it will last until somebody changes
// something, or it came while the caller waited. What was ended from outside, or had
// no processor, says nothing.
type Availability[T any] struct {
	name string

	mu      sync.Mutex
	state   state
	value   T             // while there
	err     error         // why it is away, or was before it is there again
	fate    fate          // of err
	attempt uint64        // counts Begin
	changed chan struct{} // closed and replaced with each change
}

type state int

const (
	away state = iota
	coming
	there
	closed
)

// fate is what a failure says about the next attempt.
type fate int

const (
	passing fate = iota // nothing
	failed              // it may fail again
	lasting             // it will fail again
)

// NewAvailability returns that of a process which is about to be started. The name is
// for people: "the fork server".
func NewAvailability[T any](name string) *Availability[T] {
	return &Availability[T]{name: name, state: coming, changed: make(chan struct{})}
}

// AwayError says that the process was waited for, and how long.
type AwayError struct {
	// Name is the process, Waited how long it was waited for.
	Name   string
	Waited time.Duration
	// Last is why it could not be used the last time, nil when it was never tried
	// to the end.
	Last error
	// Err is why the wait has ended.
	Err error
}

// Error says what was waited for, why it was not there, and what to do.
func (e *AwayError) Error() string {
	text := fmt.Sprintf("waited %v for %s", e.Waited.Round(time.Millisecond), e.Name)
	if e.Last != nil {
		text += fmt.Sprintf(", which is started again by itself; the last time: %v", e.Last)
	}
	return fmt.Sprintf("%s: %v; make the call again", text, e.Err)
}

// Unwrap returns why the wait has ended, and the last failure.
func (e *AwayError) Unwrap() []error {
	if e.Last == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Last}
}

// Begin says that a start begins.
func (a *Availability[T]) Begin() {
	a.change(func() {
		a.state = coming
		a.attempt++
	})
}

// There says that the process can be used, as v.
func (a *Availability[T]) There(v T) {
	a.change(func() { a.state, a.value, a.err = there, v, nil })
}

// Ended says that the process cannot be used: it could not be started, or was there
// and has ended. Begin follows.
func (a *Availability[T]) Ended(err error) {
	a.change(func() {
		var none T
		a.fate = fateOf(err)
		if a.state == there && a.fate == failed {
			a.fate = passing // it could be started before
		}
		a.state, a.value, a.err = away, none, err
	})
}

// Close says that it will not be started any more.
func (a *Availability[T]) Close(err error) {
	a.change(func() {
		var none T
		a.state, a.value, a.err = closed, none, err
	})
}

func (a *Availability[T]) change(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
	close(a.changed)
	a.changed = make(chan struct{})
}

// Now returns the process when it can be used.
func (a *Availability[T]) Now() (T, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.value, a.state == there
}

// Await returns the process, or why it cannot be used; an [*AwayError] when ctx has
// ended first. tell and waiting are those of [StartOptions], nil for none.
func (a *Availability[T]) Await(ctx context.Context, tell func(string), waiting func(Waiting)) (T, error) {
	var none T
	begun := time.Now()
	var own uint64 // the first attempt that says something about now
	for n := 0; ; n++ {
		a.mu.Lock()
		state, value, err, fate, attempt, changed := a.state, a.value, a.err, a.fate, a.attempt, a.changed
		a.mu.Unlock()
		if n == 0 {
			if own = attempt; state == away {
				own++
			}
		}
		switch {
		case state == there:
			return value, nil
		case state == closed, state == away && (fate == lasting || fate == failed && attempt >= own):
			return none, err
		}
		if waiting != nil {
			waiting(Waiting{Shared: true, Again: err != nil})
		}
		if tell != nil && err == nil {
			tell("waiting for " + a.name)
		} else if tell != nil {
			tell(fmt.Sprintf("waiting for %s, which is started again: %v", a.name, err))
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return none, &AwayError{Name: a.name, Waited: time.Since(begun), Last: err, Err: context.Cause(ctx)}
		}
	}
}

// fateOf judges a failure.
func fateOf(err error) fate {
	var lasts interface{ Lasting() bool }
	var passes interface{ Passing() bool }
	var exit *process.ExitError
	var spent *opportunity.SpentError
	switch {
	case errors.As(err, &lasts) && lasts.Lasting():
		return lasting
	case errors.As(err, &passes) && passes.Passing(), errors.As(err, &spent):
		return passing
	case errors.As(err, &exit) && exit.Signal != 0:
		return passing
	default:
		return failed
	}
}
