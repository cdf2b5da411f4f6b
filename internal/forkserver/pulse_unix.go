//go:build unix

package forkserver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coppice-run/coppice/internal/ndjson"
	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/process"
)

const (
	// pulseEvery is how often a fork server is asked whether it lives. It has one
	// thread, and does nothing else for longer than a fork takes once it is warm.
	pulseEvery = 5 * time.Second
	// stoppedWait is how long an order waits for a server that is stopped by a
	// signal: it answers when it is continued, which may never be.
	stoppedWait = time.Second
)

// How long a warm server may be silent, of time in which it could have answered.
var (
	pulsePatience = opportunity.Budget{Opportunity: 10 * time.Second, Ceiling: 2 * time.Minute}
	orderPatience = opportunity.Budget{Opportunity: 4 * time.Second, Ceiling: time.Minute}
)

var errHalted = errors.New("it is stopped by a signal or a debugger")

// listen asks the server whether it lives, until it has ended, and ends it when it
// does not answer. Its sessions live on.
func (s *Server) listen() {
	life, over := context.WithCancelCause(context.Background())
	defer over(nil)
	ticker := time.NewTicker(pulseEvery)
	defer ticker.Stop()
	for {
		select {
		case <-s.proc.Done():
			return
		case <-ticker.C:
			s.pulse(life)
		}
	}
}

// pulse asks once, and returns when there is an answer or the server has ended.
func (s *Server) pulse(life context.Context) {
	var watch opportunity.Watch
	watch.Start()
	defer watch.Stop()
	c, cancel := context.WithCancel(life)
	defer cancel()
	answered := make(chan struct{})
	go func() { // ends with cancel at the latest; answered is its join
		defer close(answered)
		_, _ = s.ask(c, ndjson.Request{Type: ndjson.TypePing}) // that it is gone is an answer, too
	}()
	meter := opportunity.Begin(s.Subject(), &watch)
	for {
		err := opportunity.Wait(c, pulsePatience, meter, answered)
		if err == nil {
			return
		}
		if s.isWarm() || s.halted() {
			s.condemn(err)
			break
		}
		meter = opportunity.Begin(s.Subject(), &watch) // it imports what it was told to
	}
	cancel()
	<-answered
}

// order is ask for what must be done. A server that is stopped, or that does not
// answer although it could, is ended: then the caller does it itself.
func (s *Server) order(ctx context.Context, r ndjson.Request) (ndjson.Frame, error) {
	late := time.AfterFunc(stoppedWait, func() { // ends in an instant: the server is killed
		if s.halted() {
			s.condemn(errHalted)
		}
	})
	defer late.Stop()
	meter := opportunity.Begin(s.Subject(), nil)
	f, err := s.ask(ctx, r)
	if err != nil && ctx.Err() != nil && s.isWarm() {
		if m := meter.Measure(); orderPatience.Expired(m) != opportunity.Open {
			s.condemn(&opportunity.SpentError{Budget: orderPatience, Measure: m, By: orderPatience.Expired(m)})
			return f, fmt.Errorf("%w: %w", ErrServerGone, err)
		}
	}
	return f, err
}

// halted says whether the server is stopped by a signal or a debugger.
func (s *Server) halted() bool {
	now, err := process.Look(s.proc.PID())
	return err == nil && now.Stopped && process.Alive(s.proc.Identity())
}

func (s *Server) isWarm() bool {
	select {
	case <-s.warm:
		return true
	default:
		return false
	}
}

// condemn ends a server that does not answer. Those who wait for an answer hear that
// it is gone.
func (s *Server) condemn(why error) {
	s.mu.Lock()
	if s.silent == nil {
		s.silent = why
	}
	s.mu.Unlock()
	_ = s.proc.Stop(context.Background(), process.StopOptions{Grace: -1}) // what survives that is stuck in the system
	_ = s.conn.Close()
}
