package hibernate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/store"
)

// What is allowed of checkpoints that was not told.
const (
	// UsualSaved is how many there may be, and UsualSavedAge how long each is kept.
	UsualSaved    = 1000
	UsualSavedAge = 90 * 24 * time.Hour
)

// never is until when something is kept that does not expire.
var never = time.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC)

// until is when a checkpoint expires that is saved at a time. The record says it itself: what
// a later host allows is for what that one saves.
func (k *Keeper) until(saved time.Time) time.Time {
	if k.o.SavedAge < 0 {
		return never
	}
	return saved.Add(k.o.SavedAge)
}

// told is an expiry as others see it: zero for none.
func told(expires time.Time) time.Time {
	if !expires.Before(never) {
		return time.Time{}
	}
	return expires
}

// admit returns why a checkpoint may not be made: there is one of that name, or there are as
// many as there may be. leave has to be called once it is made, or is not to be.
func (k *Keeper) admit(ctx context.Context, m messages.SaveCheckpoint) (leave func(), err error) {
	id := m.Checkpoint.ID()
	there, err := k.free(ctx, m)
	switch {
	case err != nil:
		return nil, err
	case there || k.o.MaxSaved < 0:
		return func() {}, nil // there are no more of them afterwards, or there may be
	}
	select {
	case k.counting <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("count the checkpoints: %w", context.Cause(ctx))
	}
	defer func() { <-k.counting }()
	n, err := k.saved(ctx)
	if err != nil {
		return nil, fmt.Errorf("count the checkpoints: %w", err)
	}
	if n >= k.o.MaxSaved {
		return nil, &messages.HibernateRefused{Reason: messages.HibernateFull, Problem: fmt.Sprintf("there are %d checkpoints, as many as this host keeps; drop one that is not needed, replace one, or have it keep more (MaxSavedCheckpoints, serve --max-saved-checkpoints)", n)}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.saving[id] = true
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.saving, id)
	}, nil
}

// saved counts the checkpoints that are there, and those that are being made.
func (k *Keeper) saved(ctx context.Context) (int, error) {
	// Those that are being made are looked at first: one that is done meanwhile is in the list.
	k.mu.Lock()
	all := make(map[string]bool, len(k.saving))
	for id := range k.saving {
		all[id] = true
	}
	k.mu.Unlock()
	headers, err := k.o.Store.List(ctx)
	for _, h := range headers {
		if _, ok := messages.ParseCheckpointKey(h.Name); ok {
			all[h.Name] = true
		}
	}
	return len(all), err
}

// notThere is why a checkpoint could not be read. Where there is none of that name, it may have
// been there for too long.
func (k *Keeper) notThere(name string, err error) error {
	refused := NotRestored(name, err)
	n, ok := errors.AsType[*messages.RestoreRefused](refused)
	_, expired := errors.AsType[*store.ExpiredError](err)
	if ok && n.Reason == messages.RestoreUnknown && !expired && k.o.SavedAge > 0 {
		n.Problem += fmt.Sprintf(" (one is kept for %s after it was saved)", span(k.o.SavedAge))
	}
	return refused
}

// span is a time for people.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= 2*day && d%day == 0 {
		return fmt.Sprintf("%d days", d/day)
	}
	return d.String()
}
