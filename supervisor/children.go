package supervisor

import (
	"slices"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// children is the table of a supervisor, and what is known of it without a look
// at every child: who is idle, who waits, how many take a place. It belongs to
// the supervisor's goroutine.
type children struct {
	clock  clock
	stalls Stalls
	now    instant // of the present event
	home   *slot   // the places of the children are below it

	table       map[string]*child
	first, last *child // the table in order
	order       int

	waitlist       waitlist  // keys that wait for capacity
	idle, failures childList // dynamic children in these states
	tallies        tallies   // how many dynamic children take a place
	heard          heard

	groupFailures []instant
	excused       int                    // how many children were shown as silent that had an excuse
	strays        map[*incarnation]stray // abandoned, and not back; nil without
}

// add makes an entry for a key.
func (s *children) add(spec *Spec, static bool) *child {
	s.order++
	ch := &child{spec: spec, static: static, order: s.order, slot: s.home.grow(spec.Key), index: -1, before: s.last}
	ch.since = s.now
	ch.slot.static = static
	if s.last != nil {
		s.last.behind = ch
	} else {
		s.first = ch
	}
	s.last = ch
	s.table[spec.Key] = ch
	if s.heard.asked {
		s.heard.add(ch, s.now)
	}
	return ch
}

// remove takes the entry of a key out.
func (s *children) remove(ch *child) {
	if ch.before != nil {
		ch.before.behind = ch.behind
	} else {
		s.first = ch.behind
	}
	if ch.behind != nil {
		ch.behind.before = ch.before
	} else {
		s.last = ch.before
	}
	ch.removed = true
	delete(s.table, ch.spec.Key)
	s.home.prune(ch.slot)
}

// count notes a failure in the child's history and in the group's.
func (s *children) count(ch *child) {
	ch.failures = appendBounded(ch.failures, s.now, strategy.MaxFailures)
	s.groupFailures = appendBounded(s.groupFailures, s.now, strategy.MaxGroupFailures)
}

func appendBounded(l []instant, t instant, limit int) []instant {
	if len(l) >= limit {
		l = slices.Delete(l, 0, len(l)-limit+1)
	}
	return append(l, t)
}

// tally counts the dynamic children of one kind and owner.
type tally struct{ live, ending, strays int }

// stray is an abandoned incarnation that has not come back.
type stray struct {
	of     tallyKey
	static bool
	why    *Exit
}

// childList is a list of children, through their elder and younger. A child is
// in at most one: of those that are idle, or of those that failed.
type childList struct{ eldest, youngest *child }

// setState is the only place that changes the state of a child, and so keeps
// the counts and lists right.
func (s *children) setState(ch *child, state messages.ChildState) {
	from := ch.state
	if from == state {
		return
	}
	ch.state = state
	if ch.static {
		return
	}
	s.unlist(ch, from)
	switch state {
	case messages.ChildIdle:
		s.idle.add(ch)
	case messages.ChildFailed:
		s.failures.add(ch)
	}
	wasLive, isLive := strategy.Live(from), strategy.Live(state)
	by := tally{btoi(isLive) - btoi(wasLive), btoi(state == messages.ChildStopping) - btoi(from == messages.ChildStopping), 0}
	if by != (tally{}) {
		// The Spec of a key changes only while it is not live.
		s.tallies.add(tallyKey{ch.spec.Kind, ch.spec.Owner}, by)
		s.tallies.add(tallyKey{ch.spec.Kind, anyOwner}, by)
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (s *children) unlist(ch *child, from messages.ChildState) {
	switch from {
	case messages.ChildIdle:
		s.idle.remove(ch)
	case messages.ChildFailed:
		s.failures.remove(ch)
	}
}

// anyOwner is the owner under which the children of a kind are counted all
// together. No owner is called that.
const anyOwner = "\x00any"

// tallies has an entry for each kind and owner that has children.
type tallies map[tallyKey]tally

func (t tallies) add(key tallyKey, by tally) {
	n := t[key]
	n.live += by.live
	n.ending += by.ending
	n.strays += by.strays
	if n == (tally{}) {
		delete(t, key)
		return
	}
	t[key] = n
}

// add puts ch behind those that have been idle for longer: nearly always at
// the end.
func (l *childList) add(ch *child) {
	after := l.youngest
	for after != nil && after.lastDone > ch.lastDone {
		after = after.elder
	}
	ch.elder = after
	if after == nil {
		ch.younger, l.eldest = l.eldest, ch
	} else {
		ch.younger, after.younger = after.younger, ch
	}
	if ch.younger == nil {
		l.youngest = ch
	} else {
		ch.younger.elder = ch
	}
}

func (l *childList) remove(ch *child) {
	if ch.elder == nil {
		l.eldest = ch.younger
	} else {
		ch.elder.younger = ch.younger
	}
	if ch.younger == nil {
		l.youngest = ch.elder
	} else {
		ch.younger.elder = ch.elder
	}
	ch.elder, ch.younger = nil, nil
}

// strayed notes an incarnation that was abandoned. Whether what it owns is gone cannot
// be known, so it keeps a place in the capacity until its goroutine has come back. It
// does not count as one that is ending: it may never end.
func (s *children) strayed(ch *child, c *incarnation, exit *Exit) {
	if s.strays == nil {
		s.strays = make(map[*incarnation]stray)
	}
	st := stray{tallyKey{ch.spec.Kind, ch.spec.Owner}, ch.static, exit}
	s.strays[c] = st
	s.tallies.stray(st, 1)
}

// returned notes that an abandoned incarnation is over. False: it is not known,
// because whoever abandoned the supervisor abandoned it too.
func (s *children) returned(c *incarnation) bool {
	st, ok := s.strays[c]
	if ok {
		delete(s.strays, c)
		s.tallies.stray(st, -1)
	}
	return ok
}

func (t tallies) stray(st stray, by int) {
	if st.static {
		return // static children have no capacity
	}
	t.add(st.of, tally{live: by, strays: by})
	t.add(tallyKey{st.of.kind, anyOwner}, tally{live: by, strays: by})
}
