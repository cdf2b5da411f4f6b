package blobstore

import (
	"context"
	"time"

	"gocloud.dev/blob"

	"github.com/coppice-run/coppice/store"
)

// OpenSwept opens a store that leaves nothing to whoever may still be using it.
func OpenSwept(ctx context.Context, bucket *blob.Bucket, o Options) (*Store, error) {
	s, err := open(ctx, bucket, o, 0)
	if err == nil {
		err = s.sweep(ctx)
	}
	return s, err
}

// Sweep sweeps now.
func Sweep(ctx context.Context, s *Store) error { return s.sweep(ctx) }

// Freeze has a record that is open give no more signs, as a host that stands still.
func Freeze(r store.Record) {
	o := r.(*opened) //nolint:forcetypeassert // it is
	o.stop()
	<-o.done
}

// Signs is how many signs of having it open a record has given.
func Signs(r store.Record) uint64 {
	o := r.(*opened) //nolint:forcetypeassert // it is
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.n
}

// Late is after how long a store gives up what it does.
const Late = usualGrace / 2

// Lasting is how long what nobody needs is left.
const Lasting time.Duration = usualGrace
