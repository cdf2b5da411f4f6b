package supervisor

import (
	"iter"
	"time"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// tally counts the dynamic children of one kind and owner.
type tally struct{ live, ending, strays int }

type tallyKey struct{ kind, owner string }

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
func (s *Shell) setState(ch *child, state messages.ChildState) {
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

func (s *Shell) unlist(ch *child, from messages.ChildState) {
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

func (s *Shell) viewsOf(l *childList) iter.Seq[strategy.ChildView] {
	return func(yield func(strategy.ChildView) bool) {
		for ch := l.eldest; ch != nil; ch = ch.younger {
			if !yield(ch.view(s)) {
				return
			}
		}
	}
}

// shellIndex is the index of a shellView.
type shellIndex struct{ s *Shell }

func (v shellView) Index() strategy.Index { return shellIndex(v) }

func (i shellIndex) Idle() iter.Seq[strategy.ChildView]   { return i.s.viewsOf(&i.s.idle) }
func (i shellIndex) Failed() iter.Seq[strategy.ChildView] { return i.s.viewsOf(&i.s.failures) }

func (i shellIndex) Census(kind, owner string, turn uint64) strategy.Census {
	var n strategy.Census
	if owner == "" {
		owner = anyOwner
	}
	if kind != "" {
		t := i.s.tallies[tallyKey{kind, owner}]
		n.Live, n.Ending, n.Strays = t.live, t.ending, t.strays
	} else {
		for key, t := range i.s.tallies {
			if key.owner == owner {
				n.Live += t.live
				n.Ending += t.ending
				n.Strays += t.strays
			}
		}
	}
	for ch := i.s.line.head; ch != nil && ch.turn <= turn; ch = ch.younger {
		if (kind == "" || ch.spec.Kind == kind) && (owner == anyOwner || ch.spec.Owner == owner) {
			n.Waiting++
		}
	}
	return n
}

func (i shellIndex) Silent(then time.Time) iter.Seq[strategy.ChildView] {
	s := i.s
	limit := int64(then.Sub(s.sys.began)) + 1
	return func(yield func(strategy.ChildView) bool) {
		for ch := s.first; ch != nil; ch = ch.behind {
			if ch.cell == nil || ch.state != messages.ChildIdle && ch.state != messages.ChildBusy {
				continue
			}
			inCall, beat := ch.cell.handling.Load(), ch.cell.beat.Load()
			if (inCall != 0 && inCall <= limit || beat != 0 && beat <= limit) && !yield(ch.view(s)) {
				return
			}
		}
	}
}
