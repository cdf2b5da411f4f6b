package fleettest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/coppice-run/coppice/fleet"
)

// Fault is what becomes of one request to a directory.
type Fault struct {
	// Before and After are how long the request and its answer are on their way.
	Before, After time.Duration
	// Drop: the request does not arrive.
	Drop bool
	// Mute: it is done, and the answer does not arrive.
	Mute bool
	// Late: the caller has an error at once, and the request arrives so much later.
	Late time.Duration
	// Stale: a read gets the entry before the latest.
	Stale bool
}

// Link is the way of one node to a directory, which fails on command. Any goroutine may
// call its methods. Close waits for requests that are late.
type Link struct {
	h    *Handle
	late sync.WaitGroup

	mu sync.Mutex
	// mended is closed while the link is whole.
	mended chan struct{}
	fault  func(op, key string) Fault
}

var _ fleet.Directory = (*Link)(nil)

// errAway is the error of what got no answer.
var errAway = errors.New("the directory does not answer")

// NewLink returns a link that is whole.
func NewLink(m *Memory) *Link {
	l := &Link{h: m.Open(), mended: make(chan struct{})}
	close(l.mended)
	return l
}

// Cut has nothing come through until Mend: requests and answers wait, those whose context
// ends meanwhile are gone.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.mended:
		l.mended = make(chan struct{})
	default:
	}
}

// Mend ends a cut.
func (l *Link) Mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.mended:
	default:
		close(l.mended)
	}
}

// Faults has f say what becomes of each request from now on; op is "get", "swap" or "remove". nil:
// nothing happens to any.
func (l *Link) Faults(f func(op, key string) Fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fault = f
}

func (l *Link) next(op, key string) Fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fault == nil {
		return Fault{}
	}
	return l.fault(op, key)
}

// pass waits until the link is whole, and then for the way.
func (l *Link) pass(ctx context.Context, way time.Duration) error {
	l.mu.Lock()
	mended := l.mended
	l.mu.Unlock()
	select {
	case <-mended:
	case <-ctx.Done():
		return errors.Join(errAway, ctx.Err())
	}
	if way <= 0 {
		return nil
	}
	t := time.NewTimer(way)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return errors.Join(errAway, ctx.Err())
	}
}

// Get implements [fleet.Directory].
func (l *Link) Get(ctx context.Context, key string) (fleet.Entry, error) {
	fault := l.next("get", key)
	if err := l.pass(ctx, fault.Before); err != nil {
		return fleet.Entry{}, err
	}
	if fault.Drop || fault.Mute || fault.Late > 0 {
		return fleet.Entry{}, errAway
	}
	get := l.h.Get
	if fault.Stale {
		get = l.h.Stale
	}
	e, err := get(ctx, key)
	if err != nil {
		return e, err
	}
	return e, l.pass(ctx, fault.After)
}

// Swap implements [fleet.Directory].
func (l *Link) Swap(ctx context.Context, key string, value []byte, prev fleet.Revision) (fleet.Revision, error) {
	fault := l.next("swap", key)
	if err := l.pass(ctx, fault.Before); err != nil {
		return "", err
	}
	switch {
	case fault.Drop:
		return "", errAway
	case fault.Late > 0:
		value = append([]byte(nil), value...)
		l.late.Go(func() {
			t := time.NewTimer(fault.Late)
			defer t.Stop()
			<-t.C
			// Nobody waits for what comes of it.
			_, _ = l.h.Swap(context.WithoutCancel(ctx), key, value, prev)
		})
		return "", errAway
	}
	rev, err := l.h.Swap(ctx, key, value, prev)
	if fault.Mute {
		return "", errAway
	}
	if way := l.pass(ctx, fault.After); way != nil {
		return "", way
	}
	return rev, err
}

// Remove implements [fleet.Directory].
func (l *Link) Remove(ctx context.Context, key string, prev fleet.Revision) error {
	fault := l.next("remove", key)
	if err := l.pass(ctx, fault.Before); err != nil {
		return err
	}
	if fault.Drop || fault.Late > 0 {
		return errAway
	}
	err := l.h.Remove(ctx, key, prev)
	if fault.Mute {
		return errAway
	}
	if way := l.pass(ctx, fault.After); way != nil {
		return way
	}
	return err
}

// Watch implements [fleet.Directory]. A cut holds back what it tells.
func (l *Link) Watch(ctx context.Context, prefix string, f func(fleet.Entry)) error {
	return l.h.Watch(ctx, prefix, func(e fleet.Entry) {
		if l.pass(ctx, 0) == nil {
			f(e)
		}
	})
}

// Close implements [fleet.Directory].
func (l *Link) Close() error {
	l.Mend()
	l.late.Wait()
	return l.h.Close()
}
