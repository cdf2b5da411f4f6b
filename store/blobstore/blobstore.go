package blobstore

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"gocloud.dev/blob"

	"github.com/coppice-run/coppice/store"
)

// Options make a [Store]. The zero value of each field is its default.
type Options struct {
	// Key is what records are sealed with, of [store.KeySize] bytes; [store.LoadKey] makes
	// one in a file. All hosts that share records have the same. Required.
	Key []byte
	// MaxBytes is how much all records of the bucket may take, as far as their contents go.
	// 0: 16 GiB; negative: as much as there is.
	MaxBytes int64
	// MaxAge is how long a record is kept whose header does not say. 0: 30 days;
	// negative: for ever.
	MaxAge time.Duration
	// Lease is how long a record that is open stays so without a sign of who has it: a
	// program that was killed has not closed it. 0: one minute.
	Lease time.Duration
}

const (
	usualBytes = 16 << 30
	usualAge   = 30 * 24 * time.Hour
	usualLease = time.Minute
	// usualGrace is how long what nobody needs is left, for who may be using it.
	usualGrace = 24 * time.Hour
	// sweepEvery is how often a store that is written to is swept, and recount how long it
	// is believed how much the records take: other hosts write and drop some, too.
	sweepEvery = time.Hour
	recount    = time.Minute
	// tries is how often a number is taken anew that another host was faster with.
	tries = 100
)

// Below the bucket are records/PLACE/N, with the name's sum and a number; buffers/KEY/SUM/AT,
// and doomed/KEY/SUM/AT of those that nobody may rely on any more; puts/KEY/ID, with the sums
// that somebody is about to rely on; open/PLACE/N, the leases; and clock/KEY.
const (
	recordsDir = "records/"
	openDir    = "open/"
)

// Store is a [store.Store] in a bucket. Make one with [Open].
type Store struct {
	o      Options
	bucket *blob.Bucket
	keyID  string // of buffers: those of another key cannot be known to be needed
	grace  time.Duration

	mu    sync.Mutex
	known map[string]*entry // by their keys; guarded by mu
	bytes int64             // of known, about; guarded by mu
	// usage is what the records take, counted when that was looked at. Guarded by mu.
	usage   usage
	counted time.Time
	swept   time.Time           // guarded by mu
	seen    map[string]sighting // of leases of others, by their places; guarded by mu
	open    map[string]*opened  // by their places; guarded by mu
}

// Open opens the records of a bucket, which stays the caller's to close, after all records
// are. It fails when the bucket does not refuse to write over what is there.
func Open(ctx context.Context, bucket *blob.Bucket, o Options) (*Store, error) {
	return open(ctx, bucket, o, usualGrace)
}

func open(ctx context.Context, bucket *blob.Bucket, o Options, grace time.Duration) (*Store, error) {
	if bucket == nil || len(o.Key) != store.KeySize {
		return nil, fmt.Errorf("open a store: it needs a bucket and a key of %d bytes; store.LoadKey makes one", store.KeySize)
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = usualBytes
	}
	if o.MaxAge == 0 {
		o.MaxAge = usualAge
	}
	if o.Lease <= 0 {
		o.Lease = usualLease
	}
	mac := hmac.New(sha256.New, o.Key)
	mac.Write([]byte("coppice buffers"))
	s := &Store{
		o: o, bucket: bucket, keyID: hex.EncodeToString(mac.Sum(nil)[:8]), grace: grace,
		known: map[string]*entry{}, seen: map[string]sighting{}, open: map[string]*opened{},
	}
	if err := s.probe(ctx); err != nil {
		return nil, fmt.Errorf("open a store: %w", err)
	}
	if err := s.sweep(ctx); err != nil {
		return nil, fmt.Errorf("open a store: %w", err)
	}
	return s, nil
}

// probe refuses a bucket that would write one object twice. There are servers that take the
// condition and do not look at it.
func (s *Store) probe(ctx context.Context) error {
	key := "clock/probe-" + rand.Text()
	if _, err := s.create(ctx, key, []byte("1")); err != nil {
		return fmt.Errorf("write to the bucket: %w", err)
	}
	again, err := s.create(ctx, key, []byte("2"))
	if err := errors.Join(err, s.remove(ctx, key)); err != nil {
		return fmt.Errorf("try the bucket's conditional writes: %w", err)
	}
	if again {
		return errors.New("the bucket writes over an object although it is told not to (If-None-Match): two hosts would take each other's records; use one that has conditional writes")
	}
	return nil
}

// place is where the records of a name are.
func place(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:16])
}

// Delete drops the record of a name. It fails when this store has the record open and has
// lost it: someone else may be restoring it by now. That error matches [store.ErrBusy].
func (s *Store) Delete(ctx context.Context, name string) error {
	at := place(name)
	s.mu.Lock()
	r := s.open[at]
	s.mu.Unlock()
	if r != nil {
		if err := r.renew(ctx); err != nil {
			return fmt.Errorf("drop what is kept of %s: %w", name, err)
		}
	}
	if err := s.end(ctx, s.records(at)); err != nil {
		return fmt.Errorf("drop what is kept of %s: %w", name, err)
	}
	s.mu.Lock()
	s.counted = time.Time{}
	s.mu.Unlock()
	return nil
}

// elapsed is how long something has taken, also when the machine slept meanwhile.
func elapsed(since time.Time) time.Duration {
	now := time.Now()
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}

// late is the error of who has taken so long that others may have dropped what they rely on.
func (s *Store) late(since time.Time) error {
	if s.grace > 0 && elapsed(since) > s.grace/2 {
		return fmt.Errorf("it took longer than %v, and what was found at its beginning may be gone; try again", s.grace/2)
	}
	return nil
}

var _ store.Store = (*Store)(nil)
