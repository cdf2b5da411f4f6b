package client

import (
	"sync"
	"time"

	"github.com/coppice-run/coppice/internal/opportunity"
)

// silence calls over once nothing was heard for as long as limit, without what this
// process stood still: what came meanwhile is read first. From half of the limit on it is
// looked into; a server that keeps a stream alive speaks more often than that. Any
// goroutine may call its methods.
type silence struct {
	limit time.Duration
	over  func()

	mu    sync.Mutex
	timer *time.Timer // guarded by mu, as all below
	last  time.Time   // when something was heard
	watch opportunity.Watch
	meter *opportunity.Meter // since half of the limit; nil before
	ended bool
}

// newSilence begins. Its end must be called.
func newSilence(limit time.Duration, over func()) *silence {
	s := &silence{limit: limit, over: over, last: time.Now()}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(limit/2, s.due)
	return s
}

// heard says that something has come.
func (s *silence) heard() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.rest()
	s.last = time.Now()
	s.timer.Reset(s.limit / 2)
}

// end ends it without over.
func (s *silence) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.rest()
	s.timer.Stop()
}

// rest measures no more. The lock is held.
func (s *silence) rest() {
	if s.meter != nil {
		s.watch.Stop()
		s.meter = nil
	}
}

// due is called by the timer.
func (s *silence) due() {
	s.mu.Lock()
	defer s.mu.Unlock()
	first, second := s.limit/2, s.limit-s.limit/2
	quiet := time.Since(s.last)
	switch {
	case s.ended:
	case quiet < first: // something came just now
		s.timer.Reset(first - quiet)
	case s.meter == nil:
		s.watch.Start()
		s.meter = opportunity.Begin(nil, &s.watch)
		s.timer.Reset(second)
	default:
		if left := s.meter.Left(opportunity.Budget{Opportunity: second}, s.meter.Measure()); left > 0 {
			s.timer.Reset(left)
			return
		}
		s.ended = true
		s.rest()
		s.over()
	}
}
