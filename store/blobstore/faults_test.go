package blobstore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/store"
	"github.com/coppice-run/coppice/store/blobstore"
)

var errBucket = errors.New("the bucket says no")

// TestABucketThatFails at each of the operations of a Put, before or after it has done
// it, in the middle of a write, once or from then on as for a program that was killed: there is
// the older record or the newer one, as a whole; the older one when Put has failed and
// doesn't say otherwise; and nothing stays behind.
func TestABucketThatFails(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		killed bool
		fail   func(d *bucket, f func(op, key string) error)
	}{
		"not done":             {false, func(d *bucket, f func(op, key string) error) { d.before = f }},
		"answer lost":          {false, func(d *bucket, f func(op, key string) error) { d.after = f }},
		"torn":                 {false, func(d *bucket, f func(op, key string) error) { d.torn = f }},
		"killed":               {true, func(d *bucket, f func(op, key string) error) { d.before = f }},
		"killed in the answer": {true, func(d *bucket, f func(op, key string) error) { d.after = f }},
		"all writes torn":      {true, func(d *bucket, f func(op, key string) error) { d.torn = f }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for at, reached := int64(1), true; reached; at++ {
				b, d := newBucket(t)
				s := open(t, b)
				require.NoError(t, put(s, "a", "older"))
				var ops atomic.Int64
				d.set(func(d *bucket) {
					tt.fail(d, func(op, key string) error {
						if n := ops.Add(1); n == at || tt.killed && n > at {
							return fmt.Errorf("%s %s: %w", op, key, errBucket)
						}
						return nil
					})
				})
				failed := put(s, "a", "newer")
				reached = ops.Load() >= at
				d.heal()
				other := open(t, b)
				got, err := get(other, "a")
				require.NoError(t, err, at)
				switch {
				case failed == nil:
					require.Equal(t, "newer", got, at)
				case strings.Contains(failed.Error(), "it is not known whether it was written"):
					require.Contains(t, []string{"older", "newer"}, got, at)
				default:
					require.ErrorIs(t, failed, errBucket)
					require.Equal(t, "older", got, at)
				}
				require.NoError(t, put(other, "a", "last"))
				holds(t, s, "a", "last")
			}
		})
	}
}

// TestABucketThatRefuses everything says so in each call, and what is kept stays.
func TestABucketThatRefuses(t *testing.T) {
	t.Parallel()
	b, d := newBucket(t)
	s := open(t, b)
	require.NoError(t, put(s, "a", "kept"))
	d.set(func(d *bucket) { d.before = func(string, string) error { return errBucket } })
	require.ErrorIs(t, put(s, "a", "no"), errBucket)
	_, err := get(s, "a")
	require.ErrorIs(t, err, errBucket)
	_, err = s.List(t.Context())
	require.ErrorIs(t, err, errBucket)
	require.ErrorIs(t, s.Delete(t.Context(), "a"), errBucket)
	_, err = blobstore.Open(t.Context(), b, blobstore.Options{Key: key})
	require.ErrorIs(t, err, errBucket)
	d.heal()
	holds(t, s, "a", "kept")
}

// TestListsThatLag: no list shows what was written since, or that something was deleted, and
// the last record is found all the same.
func TestListsThatLag(t *testing.T) {
	t.Parallel()
	b, d := newBucket(t)
	one, two := open(t, b), open(t, b)
	require.NoError(t, put(one, "a", "first"))
	d.freeze(t)
	for i := range 3 {
		for _, s := range []*blobstore.Store{one, two} {
			text := fmt.Sprintf("%d of %p", i, s)
			require.NoError(t, put(s, "a", text))
			holds(t, one, "a", text)
			holds(t, two, "a", text)
		}
		require.NoError(t, two.Delete(t.Context(), "a"))
		_, err := get(one, "a")
		require.ErrorIs(t, err, store.ErrNone)
	}
	require.NoError(t, put(one, "a", "last"))
	require.NoError(t, put(one, "new", "x"), "the first of its name")
	require.NoError(t, put(two, "new", "y"))
	d.heal()
	holds(t, two, "a", "last")
	holds(t, one, "new", "y")
}

// TestALease: a record that is open stays so as long as its host gives signs, and when it
// stands still, for as long as a lease lasts. Then it may not drop it any more.
func TestALease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _ := newBucket(t)
		one, two := open(t, b), open(t, b)
		require.NoError(t, put(one, "a", "x"))
		r, err := one.Get(t.Context(), "a", claim)
		require.NoError(t, err)
		for range 20 {
			_, err = two.Get(t.Context(), "a", claim)
			require.ErrorIs(t, err, store.ErrBusy)
			time.Sleep(20 * time.Second)
		}
		require.Greater(t, blobstore.Signs(r), uint64(20))
		require.NoError(t, r.Image(t.Context(), io.Discard))
		require.LessOrEqual(t, len(keys(t, b, "open/")), 2, "older signs are dropped")

		blobstore.Freeze(r)
		_, err = two.Get(t.Context(), "a", claim)
		require.ErrorIs(t, err, store.ErrBusy)
		time.Sleep(59 * time.Second)
		_, err = two.Get(t.Context(), "a", claim)
		require.ErrorIs(t, err, store.ErrBusy)
		time.Sleep(time.Second)
		taken, err := two.Get(t.Context(), "a", claim)
		require.NoError(t, err)
		require.ErrorIs(t, r.Image(t.Context(), io.Discard), store.ErrBusy)
		require.ErrorIs(t, one.Delete(t.Context(), "a"), store.ErrBusy)
		require.NoError(t, r.Close())
		require.NoError(t, taken.Image(t.Context(), io.Discard))
		require.NoError(t, two.Delete(t.Context(), "a"))
		require.NoError(t, taken.Close())
		_, err = one.Get(t.Context(), "a", claim)
		require.ErrorIs(t, err, store.ErrNone)

		require.NoError(t, put(one, "a", "y"))
		time.Sleep(2 * blobstore.Lasting)
		holds(t, two, "a", "y")
		time.Sleep(2 * blobstore.Lasting)
		require.NoError(t, blobstore.Sweep(t.Context(), one))
		require.Empty(t, keys(t, b, "open/"))
	})
}

// TestWhatNobodyNeeds is left for a day, then no record may rely on it, and after another one it
// is gone.
func TestWhatNobodyNeeds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, d := newBucket(t)
		s := open(t, b)
		require.NoError(t, put(s, "a", "x"))
		first := keys(t, b, "buffers/")
		require.Len(t, first, 1)
		require.NoError(t, s.Delete(t.Context(), "a"))
		require.NoError(t, put(s, "b", "x"))
		require.Equal(t, first, keys(t, b, "buffers/"), "it is there still")
		require.NoError(t, s.Delete(t.Context(), "b"))
		require.NoError(t, blobstore.Sweep(t.Context(), s))

		// A host that begins to rely on it in the middle of a sweep is seen, or sees the sweep.
		require.NoError(t, put(s, "c", "x"))
		require.Len(t, keys(t, b, "buffers/"), 2, "the doomed one is not relied on")
		require.NoError(t, s.Delete(t.Context(), "c"))
		var during error
		d.set(func(d *bucket) {
			d.before = func(op, key string) error {
				if op == "write" && strings.HasPrefix(key, "records/") {
					d.set(func(d *bucket) { d.before = nil })
					during = blobstore.Sweep(context.Background(), s)
				}
				return nil
			}
		})
		require.NoError(t, put(s, "d", "x"))
		require.NoError(t, during)
		for range 4 {
			time.Sleep(blobstore.Lasting)
			require.NoError(t, blobstore.Sweep(t.Context(), s))
			holds(t, s, "d", "x")
		}
		require.Len(t, keys(t, b, "buffers/"), 1)
		require.NoError(t, s.Delete(t.Context(), "d"))
		for range 4 {
			require.NoError(t, blobstore.Sweep(t.Context(), s))
			time.Sleep(blobstore.Lasting)
		}
		for _, dir := range []string{"records/", "buffers/", "doomed/", "puts/", "open/"} {
			require.Empty(t, keys(t, b, dir))
		}
	})
}

// TestAPutThatTakesTooLong gives up: what it found at its beginning may be gone.
func TestAPutThatTakesTooLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, d := newBucket(t)
		s := open(t, b)
		d.set(func(d *bucket) {
			d.before = func(op, key string) error {
				if op == "write" && strings.HasPrefix(key, "buffers/") {
					time.Sleep(blobstore.Late + time.Second)
				}
				return nil
			}
		})
		require.ErrorContains(t, put(s, "a", "x"), "try again")
		d.heal()
		require.NoError(t, put(s, "a", "x"))
	})
}

// TestHostsShareABuffer: of hosts that write, read and drop records of one buffer at once, none
// loses it, whoever sweeps meanwhile.
func TestHostsShareABuffer(t *testing.T) {
	t.Parallel()
	b, _ := newBucket(t)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			s, name := open(t, b), fmt.Sprint(i)
			for range 10 {
				if err := put(s, name, "x"); err != nil {
					t.Error(err)
				}
				if got, err := get(s, name); err != nil || got != "x" {
					t.Error(got, err)
				}
				if err := errors.Join(s.Delete(context.Background(), name), blobstore.Sweep(context.Background(), s)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
