package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
)

// Call is what a turn is for.
type Call struct {
	// ID names the call, for the same one sent again. "": it is never the same.
	ID string
	// Epoch is the one that the caller has seen the session in; a turn of another one is
	// not begun. 0: the caller has seen none.
	Epoch uint64
}

// Turn is work on a key that has begun. Whoever has begun it calls [Turn.Answer] before
// anything of its result leaves.
type Turn struct {
	o *Ownership
	// let is set once the answer may leave.
	let atomic.Bool
}

// MaxID is the length of a call's ID in bytes.
const MaxID = 128

// Begin asks whether work may begin on the key, now: what is run without it, or after an
// error, breaks what the package promises. The error matches [ErrSuspended], [ErrOver],
// [ErrReleased] or [ErrBegun], or is an [*EpochError]; in the strict mode it may also say
// that ctx ended. In each case nothing has begun.
func (o *Ownership) Begin(ctx context.Context, c Call) (*Turn, error) {
	if len(c.ID) > MaxID {
		return nil, fmt.Errorf("begin a turn: an ID of %d bytes: at most %d", len(c.ID), MaxID)
	}
	if err := o.turn.take(ctx); err != nil {
		return nil, fmt.Errorf("begin a turn: %w", err)
	}
	defer o.turn.free()
	if err := o.admit(c); err != nil {
		return nil, fmt.Errorf("begin a turn: %w", err)
	}
	if err := o.settled(ctx); err != nil {
		return nil, fmt.Errorf("begin a turn: %w", err)
	}
	recent := remember(o.recent, c.ID)
	if o.m.o.Strict {
		next := o.claim
		next.Recent = recent[max(0, len(recent)-inClaims):]
		if err := o.confirm(ctx, next); err != nil {
			return nil, fmt.Errorf("begin a turn: %w", err)
		}
	} else if err := o.m.Check(); err != nil {
		return nil, fmt.Errorf("begin a turn: %w", err)
	}
	o.recent, o.begun = recent, true
	if c.ID != "" {
		o.turns++
	}
	return &Turn{o: o}, nil
}

// admit is what needs neither a lease nor a swap. The caller has the turn.
func (o *Ownership) admit(c Call) error {
	if err := o.m.Err(); err != nil {
		return err
	}
	if o.over() {
		return ErrReleased
	}
	if c.Epoch != 0 && c.Epoch != o.epoch {
		return &EpochError{Meant: c.Epoch, Now: o.epoch}
	}
	if c.ID != "" && slices.Contains(o.recent, c.ID) {
		return ErrBegun
	}
	return nil
}

// remember puts an ID behind the others, of which the oldest may have to go.
func remember(ids []string, id string) []string {
	if id == "" {
		return ids
	}
	ids = append(slices.Clone(ids), id)
	return ids[max(0, len(ids)-remembered):]
}

// confirm writes to the claim, and ends the ownership when that is another node's: then
// the error matches ErrReleased. The caller has the turn.
func (o *Ownership) confirm(ctx context.Context, next Claim) error {
	err := o.write(ctx, next)
	if errors.Is(err, ErrConflict) {
		o.finish()
		return ErrReleased
	}
	return err
}

// Answer asks whether the answer of a turn may leave. It waits while the node is suspended.
// nil says that it may: nobody else could own the key at a moment after Answer was called.
// An error that matches [ErrLost] is final, and whoever waits for the answer has to be told
// that it is lost. One that matches [ErrHeld] says that ctx ended first: a later call asks
// again. Once it was nil it stays so.
func (t *Turn) Answer(ctx context.Context) error {
	if t.let.Load() {
		return nil
	}
	err := t.Show(ctx)
	if err == nil {
		t.let.Store(true)
	}
	return err
}

// Show asks what [Turn.Answer] asks, for what a turn shows before its answer: each call is
// about what there is to show when it begins, and nothing is remembered.
func (t *Turn) Show(ctx context.Context) error {
	if t.o.doubt.Load() {
		if err := t.undoubted(ctx); err != nil {
			return err
		}
	}
	if t.o.m.o.Strict {
		return t.confirmed(ctx)
	}
	return t.leased(ctx)
}

// leased waits for a moment at which the lease is valid.
func (t *Turn) leased(ctx context.Context) error {
	m := t.o.m
	for {
		m.mu.Lock()
		changed := m.changed
		err := m.life.check(m.o.Clock())
		m.mu.Unlock()
		if t.o.over() {
			return ErrLost
		}
		if err == nil {
			return nil
		}
		if errors.Is(err, ErrOver) {
			return fmt.Errorf("%w: %w", ErrLost, err)
		}
		select {
		case <-changed:
		case <-t.o.ended:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrHeld, ctx.Err())
		}
	}
}

// confirmed swaps the claim, which nobody else's may have replaced.
func (t *Turn) confirmed(ctx context.Context) error {
	o := t.o
	if err := o.turn.take(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrHeld, err)
	}
	defer o.turn.free()
	if o.over() {
		return ErrLost
	}
	if err := o.m.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	err := o.confirm(ctx, o.claim)
	if errors.Is(err, ErrReleased) {
		return ErrLost
	} else if err != nil {
		return fmt.Errorf("%w: %w", ErrHeld, err)
	}
	return nil
}
