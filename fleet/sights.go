package fleet

import (
	"time"
)

// sights is what one observer has seen of the renewals of nodes, and since when. It is a
// value without a clock or a lock; now is a time of the observer's monotonic clock, which
// makes it wait too long where the machine has slept, never too short.
type sights struct {
	seen  map[string]sight
	pulse pulse
}

// sight is one node.
type sight struct {
	node Node
	rev  Revision
	// since is when this number of a renewal was first seen.
	since time.Time
}

// pulse is since when, and until when, the directory has answered the observer's own
// renewals without a gap: silence of others counts in no other time, for while the
// directory is away nobody can renew.
type pulse struct{ start, last time.Time }

// beat says that a renewal of the observer's own was acknowledged.
func (p *pulse) beat(now time.Time, ttl time.Duration) {
	if p.last.IsZero() || now.Sub(p.last) > gap(ttl) {
		p.start = now
	}
	p.last = now
}

// steady reports whether there is no gap now.
func (p *pulse) steady(now time.Time, ttl time.Duration) bool {
	return !p.last.IsZero() && now.Sub(p.last) <= gap(ttl)
}

// gap is how far renewals may be apart: with a beat of a quarter of TTL, one may fail.
func gap(ttl time.Duration) time.Duration { return ttl / 2 }

// silence is how long the record of a node has to stand still before it is declared dead:
// a tenth more than its lease, for clocks that do not go alike.
func silence(ttl time.Duration) time.Duration { return ttl + ttl/10 }

// see takes the record of a node. One of a number that was seen before does not begin the
// silence again, whatever its revision. It reports whether a node may be due before that was
// known: a renewal of one that was seen before only puts it off.
func (s *sights) see(n Node, rev Revision, now time.Time) (sooner bool) {
	if n.State.Final() {
		delete(s.seen, n.ID)
		return false
	}
	since := now
	was, known := s.seen[n.ID]
	if known && was.node.Seq == n.Seq {
		since = was.since
	}
	if s.seen == nil {
		s.seen = map[string]sight{}
	}
	s.seen[n.ID] = sight{node: n, rev: rev, since: since}
	return !known || n.TTL < was.node.TTL
}

// missing takes that a claim names a node that has no record, whose lease would last for
// ttl. Its silence begins unless something of it was seen before.
func (s *sights) missing(id string, ttl time.Duration, now time.Time) {
	if _, ok := s.seen[id]; !ok {
		s.see(Node{ID: id, TTL: ttl, State: Up}, "", now)
	}
}

// due returns the nodes to declare dead now, and when the next one is due: zero for none.
// ttl is the observer's own.
func (s *sights) due(self string, ttl time.Duration, now time.Time) (dead []sight, next time.Time) {
	for id, n := range s.seen {
		if id == self {
			continue
		}
		at := latest(n.since, s.pulse.start).Add(silence(n.node.TTL))
		switch {
		case now.Before(at):
			if next.IsZero() || at.Before(next) {
				next = at
			}
		case s.pulse.steady(now, ttl):
			dead = append(dead, n)
		}
	}
	return dead, next
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
