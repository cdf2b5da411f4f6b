package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Guard makes a directory of a store that does what it is asked, and nothing besides: what all
// directories have alike is the guard's. A store is called with keys and values that a
// directory takes, and with contexts that end with the directory, too. Its errors need not
// say what was asked; its Watch may call f late, and return nil when it can watch no longer.
// Its Close is called once.
//
// It is for who writes a directory; what a Directory promises about swaps stays the store's.
func Guard(store Directory) Directory {
	life, end := context.WithCancel(context.Background())
	return &guarded{store: store, life: life, end: end}
}

// guarded is the directory of a store.
type guarded struct {
	store Directory
	// life ends with Close.
	life context.Context //nolint:containedctx // the life of the directory, not that of a call
	end  context.CancelFunc
	once sync.Once
}

// errEnded: a store ends a watch without a reason.
var errEnded = errors.New("the store has ended it")

// check returns why nothing can be asked.
func (g *guarded) check(ctx context.Context) error {
	if g.life.Err() != nil {
		return ErrClosed
	}
	return ctx.Err()
}

// bound returns a context that ends with ctx and with the directory.
func (g *guarded) bound(ctx context.Context) (both context.Context, release func()) {
	both, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(g.life, cancel)
	return both, func() {
		stop()
		cancel()
	}
}

// ask has the store do one thing about a key.
func (g *guarded) ask(ctx context.Context, what, key string, invalid error, do func(context.Context) error) error {
	if err := g.check(ctx); err != nil {
		return err
	}
	if invalid != nil {
		return invalid
	}
	both, release := g.bound(ctx)
	defer release()
	err := do(both)
	if err == nil {
		return nil
	}
	if why := g.check(ctx); why != nil && !errors.Is(err, ErrConflict) && !errors.Is(err, why) {
		err = fmt.Errorf("%w: %w", why, err)
	}
	return fmt.Errorf("%s %s: %w", what, key, err)
}

// Get implements [Directory].
func (g *guarded) Get(ctx context.Context, key string) (Entry, error) {
	var e Entry
	err := g.ask(ctx, "get", key, ValidKey(key), func(ctx context.Context) (err error) {
		e, err = g.store.Get(ctx, key)
		return err
	})
	if err != nil {
		return Entry{}, err
	}
	return e, nil
}

// Swap implements [Directory].
func (g *guarded) Swap(ctx context.Context, key string, value []byte, prev Revision) (Revision, error) {
	var rev Revision
	err := g.ask(ctx, "swap", key, ValidEntry(key, value), func(ctx context.Context) (err error) {
		rev, err = g.store.Swap(ctx, key, value, prev)
		return err
	})
	if err != nil {
		return "", err
	}
	return rev, nil
}

// Remove implements [Directory].
func (g *guarded) Remove(ctx context.Context, key string, prev Revision) error {
	return g.ask(ctx, "remove", key, ValidKey(key), func(ctx context.Context) error {
		if prev == "" {
			return nil // no entry has it
		}
		return g.store.Remove(ctx, key, prev)
	})
}

// Watch implements [Directory].
func (g *guarded) Watch(ctx context.Context, prefix string, f func(Entry)) error {
	if err := g.check(ctx); err != nil {
		return err
	}
	both, release := g.bound(ctx)
	defer release()
	err := g.store.Watch(both, prefix, func(e Entry) {
		if both.Err() == nil {
			f(e)
		}
	})
	if why := g.check(ctx); why != nil {
		return why
	}
	if err == nil {
		err = errEnded
	}
	return fmt.Errorf("watch %q: %w", prefix, err)
}

// Close implements [Directory].
func (g *guarded) Close() (err error) {
	g.once.Do(func() {
		g.end()
		err = g.store.Close()
	})
	return err
}
