package kernel

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/coppice-run/coppice/internal/opportunity"
)

// How the silence of an interpreter is looked at, in parts and multiples of
// Options.HeartbeatEvery.
const (
	// soonPart is the part of it after which an unanswered ping is looked into: what
	// answers at once, as all do on a machine in order, is never looked at.
	soonPart = 8
	// lookPart is how often it is looked at then.
	lookPart = 4
	// pingCeilings is how long one ping may take when the interpreter has no
	// processor to answer with.
	pingCeilings = 6
	// mostLooks is how many times in a row an interpreter without a run is looked at from
	// outside instead of being asked.
	mostLooks = 60
)

// How many times in a heartbeat this process wakes up to see after kernels: more often where
// there are many, so that no call waits until all of a round were seen after.
const (
	leastRounds, mostRounds = 50, 1000
	together                = 100 // kernels in a round
)

// seenAfter is how many kernels of this process there are in rounds.
var seenAfter atomic.Int64

// untilRound is a heartbeat, and so much less that it ends together with those of other
// kernels: waking up costs this process more than what it then does for one of them.
func untilRound(now time.Time, every time.Duration) time.Duration {
	rounds := min(max(seenAfter.Load()/together, leastRounds), mostRounds)
	round := max(every/time.Duration(rounds), 1)
	return every - time.Duration(now.UnixNano())%round
}

// silence is what the interpreter waited for a processor while it owes an answer, and
// how much of that was said to the supervisor. It goes on over pings that failed. One
// goroutine at a time uses it.
type silence struct {
	meter *opportunity.Meter
	said  time.Duration
}

// look measures, and says what is new.
func (s *silence) look(waited func(time.Duration)) opportunity.Measure {
	m := s.meter.Measure()
	s.tell(waited)(m)
	return m
}

// tell says what is new in a measure.
func (s *silence) tell(waited func(time.Duration)) func(opportunity.Measure) {
	return func(m opportunity.Measure) {
		if all := m.Listened - m.Opportunity; all != s.said {
			waited(all - s.said)
			s.said = all
		}
	}
}

// ping asks the interpreter whether it lives, off the actor's goroutine; only
// an answer beats, so silence is what package supervisor's Heartbeat sees.
func (a *Actor) ping() {
	if a.pinging || a.interp == nil || a.look() {
		return
	}
	a.pinging = true
	interp, mute := a.interp, a.silence
	a.pump(func() {
		c, cancel := context.WithCancel(a.life)
		defer cancel()
		answer := make(chan error, 1)
		a.pump(func() { answer <- interp.Ping(c) })
		p := pong{silence: mute}
		p.again, p.err = a.await(interp, &p.silence, answer, cancel)
		p.rss = interp.RSS()
		a.ctx.Tell(p)
	})
}

// look spares an interpreter that has nothing to do, and has answered since it had, a
// ping: it reports whether it is seen from outside that it could answer. One that has answered
// nothing but its last call could, if that has left nothing in it that runs. Its death is
// heard without (see started).
func (a *Actor) look() bool {
	l, ok := a.interp.(Looker)
	if !ok || a.run != nil || a.silence != nil || !a.answered && !a.returned || a.looks >= mostLooks {
		return false
	}
	is, err := l.Look()
	if err != nil || !a.answered && !is.Alone {
		return false
	}
	a.looks++
	a.ctx.Beat()
	a.rss, a.weighed = is.RSS, time.Now()
	a.publish()
	return true
}

// await waits for the answer to a ping until the interpreter had the chance to give it
// for as long as a heartbeat, and then has the ping end.
func (a *Actor) await(interp Interpreter, mute **silence, answer <-chan error, end func()) (again bool, err error) {
	every := a.o.HeartbeatEvery
	if *mute == nil {
		soon := time.NewTimer(every / soonPart)
		defer soon.Stop()
		select {
		case err = <-answer:
			return false, err
		case <-soon.C:
			*mute = &silence{meter: a.meter(interp)}
		}
	}
	s, budget := *mute, opportunity.Budget{Opportunity: every, Ceiling: pingCeilings * every}
	first := s.look(a.ctx.Waited)
	for {
		seen := s.look(a.ctx.Waited).After(first)
		left := s.meter.Left(budget, seen)
		if left <= 0 {
			end()
			return budget.Expired(seen) == opportunity.ByCeiling, <-answer
		}
		next := time.NewTimer(min(left, every/lookPart))
		select {
		case err = <-answer:
			next.Stop()
			seen = s.look(a.ctx.Waited).After(first)
			return seen.Wall > every/2 && seen.Opportunity < every, err // it gave up too early
		case <-next.C:
		}
	}
}

func (a *Actor) pong(m pong) {
	a.pinging = false
	if m.err != nil {
		if a.silence = m.silence; m.again {
			a.ping()
		}
		return
	}
	a.silence, a.answered, a.looks = nil, a.run == nil, 0
	a.ctx.Beat()
	a.rss, a.weighed = m.rss, time.Now()
	a.note()
}
