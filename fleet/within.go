package fleet

import (
	"context"
	"fmt"
	"strings"
	"sync"
)

// Within returns the part of a directory that is called name, one part of a key: a directory whose
// entries nobody sees that has another part, or the whole but for its Watch of "". Members of one part are
// a fleet of their own, so that several tenants share a directory and nothing else. A key has as many
// bytes fewer than [MaxKey] as name has, and six. Its Close leaves d open. It panics when name is no part of a key.
func Within(d Directory, name string) Directory {
	if err := ValidKey(name); err != nil || strings.Contains(name, ".") {
		panic(fmt.Sprintf("fleet: %q is no part of a key", name))
	}
	w := &within{d: d, prefix: "part." + name + "."}
	w.open, w.end = context.WithCancel(context.Background())
	return w
}

// within is a part of a directory.
type within struct {
	d      Directory
	prefix string
	open   context.Context //nolint:containedctx // it is the life of the directory
	end    context.CancelFunc
}

// bound is a context that ends with the directory, too. done is called.
func (w *within) bound(ctx context.Context) (_ context.Context, done func(), err error) {
	if w.open.Err() != nil {
		return nil, nil, ErrClosed
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(w.open, func() { cancel(ErrClosed) })
	return ctx, sync.OnceFunc(func() { stop(); cancel(nil) }), nil
}

// said is an error of the directory, or that this part of it was closed meanwhile.
func (w *within) said(err error) error {
	if err != nil && w.open.Err() != nil {
		return ErrClosed
	}
	return err
}

// own is an entry as the part has it.
func (w *within) own(e Entry) Entry {
	e.Key = strings.TrimPrefix(e.Key, w.prefix)
	return e
}

// key is what a key is called in the directory.
func (w *within) key(key string) (string, error) {
	if err := ValidKey(key); err != nil {
		return "", err
	}
	return w.prefix + key, nil
}

// Get implements [Directory].
func (w *within) Get(ctx context.Context, key string) (Entry, error) {
	full, err := w.key(key)
	if err != nil {
		return Entry{}, err
	}
	ctx, done, err := w.bound(ctx)
	if err != nil {
		return Entry{}, err
	}
	defer done()
	e, err := w.d.Get(ctx, full)
	return w.own(e), w.said(err)
}

// Swap implements [Directory].
func (w *within) Swap(ctx context.Context, key string, value []byte, prev Revision) (Revision, error) {
	full, err := w.key(key)
	if err != nil {
		return "", err
	}
	ctx, done, err := w.bound(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	return w.d.Swap(ctx, full, value, prev)
}

// Remove implements [Directory].
func (w *within) Remove(ctx context.Context, key string, prev Revision) error {
	full, err := w.key(key)
	if err != nil {
		return err
	}
	ctx, done, err := w.bound(ctx)
	if err != nil {
		return err
	}
	defer done()
	return w.said(w.d.Remove(ctx, full, prev))
}

// Watch implements [Directory].
func (w *within) Watch(ctx context.Context, prefix string, f func(Entry)) error {
	ctx, done, err := w.bound(ctx)
	if err != nil {
		return err
	}
	defer done()
	return w.said(w.d.Watch(ctx, w.prefix+prefix, func(e Entry) { f(w.own(e)) }))
}

// Close implements [Directory].
func (w *within) Close() error {
	w.end()
	return nil
}
