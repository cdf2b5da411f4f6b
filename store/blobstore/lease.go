package blobstore

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/coppice-run/coppice/store"
)

// opened is a record that is open: its lease is the last of a chain of which each number is
// a sign of whoever has it. Who wants it and has seen no new one for as long as it lasts adds
// one of theirs; the same number is never written by both, so either sees that it has lost.
type opened struct {
	s     *Store
	place string
	body  store.Body
	who   string

	mu      sync.Mutex
	n       uint64    // the last sign; guarded by mu
	renewed time.Time // when it began to be written; guarded by mu
	lost    error     // guarded by mu
	closed  bool      // guarded by mu

	stop func()        // ends the renewals
	done chan struct{} // closed when they have ended
}

// sighting is the sign of somebody else's lease that was seen, and when it was first.
type sighting struct {
	n    uint64
	data string
	at   time.Time
}

// renewals is how often a lease is renewed in the time that it lasts.
const renewals = 6

// acquire takes the lease of a place. The error matches [store.ErrBusy] while it is
// someone else's.
func (s *Store) acquire(ctx context.Context, place string) (*opened, error) {
	c := s.leases(place)
	n, data, err := c.newest(ctx)
	if err != nil {
		return nil, fmt.Errorf("see who has it open: %w", err)
	}
	if n != 0 && string(data) != string(none) && !s.abandoned(place, n, string(data)) {
		return nil, store.ErrBusy
	}
	r := &opened{s: s, place: place, who: rand.Text(), n: n + 1, renewed: time.Now(), done: make(chan struct{})}
	made, err := s.create(ctx, c.key(r.n), r.sign(r.n))
	if err != nil {
		return nil, fmt.Errorf("say that it is open: %w", err)
	}
	if !made {
		return nil, store.ErrBusy
	}
	c.clean(ctx, r.n)
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	r.stop = stop
	s.mu.Lock()
	delete(s.seen, place)
	s.open[place] = r
	s.mu.Unlock()
	go r.keep(life) // ends with Close
	return r, nil
}

// abandoned reports whether a lease has shown no new sign for as long as it lasts, as far as
// was looked. Its own times say nothing: they are another host's.
func (s *Store) abandoned(place string, n uint64, data string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen, ok := s.seen[place]
	if !ok || seen.n != n || seen.data != data {
		s.seen[place] = sighting{n, data, time.Now()}
		return false
	}
	return time.Since(seen.at) >= s.o.Lease
}

func (r *opened) sign(n uint64) []byte { return fmt.Appendf(nil, "%s %d\n", r.who, n) }

// keep renews the lease until it is closed.
func (r *opened) keep(ctx context.Context) {
	defer close(r.done)
	every := time.NewTicker(max(r.s.o.Lease/renewals, time.Millisecond))
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
			_ = r.renew(ctx) // what is lost is said to who uses the record
		}
	}
}

// held returns an error that matches [store.ErrBusy] once the record may be someone else's.
// Half of the time that others wait is enough for that: theirs began later.
func (r *opened) held() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.holds()
}

func (r *opened) holds() error {
	if r.lost == nil && elapsed(r.renewed) > r.s.o.Lease/2 {
		r.lost = fmt.Errorf("%w: this host gave no sign of having it open for %v", store.ErrBusy, elapsed(r.renewed).Round(time.Millisecond))
	}
	return r.lost
}

// renew gives a sign. It fails when that cannot be done, and for ever once the record was
// lost.
func (r *opened) renew(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.holds(); err != nil {
		return err
	}
	c, began, next := r.s.leases(r.place), time.Now(), r.n+1
	made, err := r.s.create(ctx, c.key(next), r.sign(next))
	if err != nil {
		return fmt.Errorf("say that it is still open: %w", err)
	}
	if !made {
		r.lost = fmt.Errorf("%w: this host gave no sign for too long", store.ErrBusy)
		return r.lost
	}
	r.n, r.renewed = next, began
	c.clean(ctx, next)
	return nil
}

// Close lets others open the record. When the bucket does not take that they can when the
// lease has ended, which needs nobody's help: no error.
func (r *opened) Close() error {
	r.mu.Lock()
	again := r.closed
	r.closed = true
	r.mu.Unlock()
	if again {
		return nil
	}
	r.stop()
	<-r.done
	r.s.mu.Lock()
	if r.s.open[r.place] == r {
		delete(r.s.open, r.place)
	}
	r.s.mu.Unlock()
	if r.held() != nil {
		return nil
	}
	ctx, stop := context.WithTimeout(context.Background(), r.s.o.Lease)
	defer stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.s.leases(r.place)
	if made, err := r.s.create(ctx, c.key(r.n+1), none); err == nil && made {
		c.clean(ctx, r.n+1)
	}
	return nil
}
