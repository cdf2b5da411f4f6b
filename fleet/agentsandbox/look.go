package agentsandbox

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// looks are those at one claim: at most one runs, and all who come meanwhile wait for the one
// after it.
type looks struct {
	running bool
	next    *look
}

// look is one. Its result stands once done is closed.
type look struct {
	done chan struct{}
	c    claim
	err  error
}

// looking bounds a look: whoever waits for one may ask again.
const looking = 10 * time.Second

// look reads a claim from the store, by a request that begins after look was called. The error is
// that of the API server.
func (s *Sandboxes) look(ctx context.Context, name string) (claim, error) {
	l, err := s.join(name)
	if err != nil {
		return claim{}, err
	}
	select {
	case <-l.done:
		return l.c, l.err
	case <-ctx.Done():
		return claim{}, ctx.Err()
	}
}

// join is the next look at a claim.
func (s *Sandboxes) join(name string) (*look, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	of := s.looks[name]
	if of == nil {
		of = &looks{}
		s.looks[name] = of
	}
	if of.next == nil {
		of.next = &look{done: make(chan struct{})}
	}
	l := of.next
	if !of.running {
		of.running = true
		s.joined.Go(func() { s.run(name, of) })
	}
	return l, nil
}

// run makes the looks at one claim, until nobody waits for another. It is the only one that
// does so for that name.
func (s *Sandboxes) run(name string, of *looks) {
	for {
		s.mu.Lock()
		l := of.next
		of.next = nil
		if l == nil {
			delete(s.looks, name)
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		ctx, cancel := context.WithTimeout(s.life, looking)
		u, err := s.claims().Get(ctx, name, metav1.GetOptions{}) // without a version it is that of the store
		cancel()
		if err == nil {
			l.c, err = read(u)
		}
		l.err = err
		close(l.done)
	}
}
