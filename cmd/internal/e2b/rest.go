package e2b

import (
	"context"
	"sync"
	"time"
)

// rest is whether a sandbox runs or is paused, and what is under way with that. Make it
// with newRest.
type rest struct {
	retime chan struct{} // has one while the time of a pause has changed

	mu      sync.Mutex
	changed chan struct{} // closed and made again with every change; guarded by mu
	moving  bool          // it is being paused or resumed; guarded by mu
	paused  time.Time     // since when it is, zero: it runs; guarded by mu
	under   [uses]int     // how many requests are under way, by what they may do; guarded by mu
	auto    auto          // guarded by mu
	pauseAt time.Time     // when it is paused by itself, zero: never; guarded by mu

	// What the workspace had when it was paused. They belong to whoever moves it.
	idleEnd time.Duration
	pinned  bool
}

// use is what a request may do in a sandbox.
type use int

const (
	looks  use = iota // nothing that a pause or a copy need wait for
	starts            // start code or a process
	writes            // change files
	uses
)

// auto is what a sandbox does by itself.
type auto struct {
	pause  bool // at its timeout; else it ends
	memory bool // with its memory
	resume bool // when something is asked of its inside
}

func newRest() *rest { return &rest{retime: make(chan struct{}, 1), changed: make(chan struct{})} }

// lock returns with mu held, when a condition holds. The error is that of ctx; mu is not
// held then.
func (r *rest) lock(ctx context.Context, holds func() bool) error {
	r.mu.Lock()
	for !holds() {
		changed := r.changed
		r.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		r.mu.Lock()
	}
	return nil
}

// change wakes those who wait in lock. mu is held.
func (r *rest) change() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// take begins to move a sandbox that is paused, or that runs, once nothing else moves it.
// False: it is not in that state. Else the caller has to call done.
func (r *rest) take(ctx context.Context, paused bool) (bool, error) {
	if err := r.lock(ctx, func() bool { return !r.moving }); err != nil {
		return false, err
	}
	defer r.mu.Unlock()
	if paused == r.paused.IsZero() {
		return false, nil
	}
	r.moving = true
	return true, nil
}

// done ends the move: the sandbox is paused since then, or runs.
func (r *rest) done(paused time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.moving, r.paused = false, paused
	r.change()
	r.rearm()
}

// since is since when the sandbox is paused; zero: it runs.
func (r *rest) since() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.paused
}

// enter says that a request begins which may do something, until leave is called. It waits
// while the sandbox is being moved. False: the sandbox is paused.
func (r *rest) enter(ctx context.Context, does use) (leave func(), ok bool, err error) {
	if err := r.lock(ctx, func() bool { return !r.moving }); err != nil {
		return nil, false, err
	}
	defer r.mu.Unlock()
	if !r.paused.IsZero() {
		return nil, false, nil
	}
	r.under[does]++
	return sync.OnceFunc(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.under[does]--
		r.change()
	}), true, nil
}

// settled waits until no request is under way that may do this.
func (r *rest) settled(ctx context.Context, does use) error {
	err := r.lock(ctx, func() bool { return r.under[does] == 0 })
	if err == nil {
		r.mu.Unlock()
	}
	return err
}

// does returns what the sandbox does by itself, and when it is paused.
func (r *rest) does() (auto, time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.auto, r.pauseAt
}

// will says what the sandbox does by itself.
func (r *rest) will(do auto) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.auto = do
}

// pausesAt says when it is paused by itself.
func (r *rest) pausesAt(at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pauseAt = at
	r.rearm()
}

// rearm has whoever waits for the time look again. mu is held.
func (r *rest) rearm() {
	select {
	case r.retime <- struct{}{}:
	default: // it has not looked yet
	}
}

// left is how long it is until the sandbox is paused by itself; false: it is not.
func (r *rest) left() (time.Duration, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(time.Until(r.pauseAt), 0), !r.pauseAt.IsZero() && r.paused.IsZero()
}
