package opportunity

import (
	"errors"
	"io/fs"
	"sync"
	"time"

	"github.com/coppice-run/coppice/internal/process"
)

// Meter measures the opportunity of one other side from when it began. Any goroutine
// may use it. It holds nothing that must be given back.
type Meter struct {
	subject Subject
	stalls  Stalls
	begun   time.Time
	from    totals // of us and of the subject, at the beginning
	slept   time.Duration

	mu      sync.Mutex
	account account
	sample  Sample        // the last
	base    Sample        // the first
	blind   bool          // the subject will tell nothing more
	seen    time.Time     // when it told the last; zero: it has not
	pending time.Duration // as it was then
	putOff  bool          // a verdict was put off, and counted
}

// Begin begins to measure. Without stalls (nil) nothing is known of our own standing
// still. The subject is the meter's from now on; nil is [Unknown].
func Begin(s Subject, stalls Stalls) *Meter {
	if s == nil {
		s = Unknown{}
	}
	if stalls == nil {
		stalls = never{}
	}
	m := &Meter{subject: s, stalls: stalls, slept: slept()}
	m.from.stalled = stalls.Stalled()
	m.begun = time.Now()
	m.look(m.begun)
	return m
}

// Opportunity is that of Measure.
func (m *Meter) Opportunity() time.Duration { return m.Measure().Opportunity }

// Measure looks at the other side and says what was seen since the beginning. Of a
// side that has ended it is known that it waits no more.
func (m *Meter) Measure() Measure {
	m.mu.Lock()
	defer m.mu.Unlock()
	// Before the time: what is stalled while we look is of the next span, as that time is.
	stalled := m.stalls.Stalled() - m.from.stalled
	now := time.Now()
	m.look(now)
	seen := totals{
		wall: now.Sub(m.begun), stalled: stalled,
		waited: m.sample.Waited - m.base.Waited + m.sample.Disk - m.base.Disk, pending: m.sample.Pending,
	}
	m.account.add(seen)
	wall := m.account.last.wall
	return Measure{
		Wall: wall, Opportunity: m.account.chance, Most: m.account.most, Listened: m.account.listened,
		Waited:  between(0, m.sample.Waited-m.base.Waited+m.account.pending, wall),
		Disk:    between(0, m.sample.Disk-m.base.Disk, wall),
		Stalled: between(0, seen.stalled, wall), Slept: max(0, slept()-m.slept),
		Throttled: m.sample.Throttled - m.base.Throttled, Ran: m.sample.Ran - m.base.Ran,
		Stopped: m.sample.Stopped, Known: m.sample.Known, owed: m.account.owed,
	}
}

// look reads the subject. What it told last stands when it has ended and tells nothing
// more, and for as long as a look fails for another reason. While we cannot look, as when
// there is no descriptor left for that, it may have waited all the time: that is no
// opportunity, until it can be seen again.
func (m *Meter) look(now time.Time) {
	if m.blind {
		return
	}
	s, err := m.subject.Look(now)
	switch {
	case err == nil:
		if m.seen.IsZero() {
			m.base = s
		}
		m.sample, m.seen, m.pending = s, now, s.Pending
	case over(err):
		m.blind = true
		m.sample.Pending, m.sample.Stopped = 0, false
	case !process.Exhausted(err):
		m.sample.Pending = 0
	default:
		since := m.seen
		if since.IsZero() {
			since = m.begun
		}
		m.sample.Pending, m.sample.Stopped = m.pending+now.Sub(since), false
	}
}

// over says that nothing more will be known of a subject.
func over(err error) bool {
	return errors.Is(err, process.ErrNoProcess) || errors.Is(err, process.ErrUnsupported) || errors.Is(err, fs.ErrNotExist)
}
