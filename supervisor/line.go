package supervisor

import "github.com/coppice-run/coppice/messages"

// line is the keys that wait for capacity, in the order of their turns, linked
// through elder and younger. Those that have not been asked for yet are its end.
// The Spec of a key does not change while it stands in line.
type line struct {
	head, tail *child
	untold     *child // the first that was not asked for, nil if there is none
	n          int
	groups     map[tallyKey]int // how many of each kind and owner stand in it
	turns      uint64           // how many have come, ever
}

func groupOf(ch *child) tallyKey { return tallyKey{ch.spec.Kind, ch.spec.Owner} }

// add puts ch, which is in no list, at the end.
func (l *line) add(ch *child) {
	l.turns++
	ch.waiting, ch.turn = true, l.turns
	ch.elder, ch.younger = l.tail, nil
	if l.tail == nil {
		l.head = ch
	} else {
		l.tail.younger = ch
	}
	l.tail = ch
	if l.untold == nil {
		l.untold = ch
	}
	l.n++
	if l.groups == nil {
		l.groups = make(map[tallyKey]int)
	}
	l.groups[groupOf(ch)]++
}

// told notes that ch was asked for and has to go on waiting.
func (l *line) told(ch *child) {
	if l.untold == ch {
		l.untold = ch.younger
	}
}

func (l *line) remove(ch *child) {
	l.told(ch)
	if ch.elder == nil {
		l.head = ch.younger
	} else {
		ch.elder.younger = ch.younger
	}
	if ch.younger == nil {
		l.tail = ch.elder
	} else {
		ch.younger.elder = ch.elder
	}
	ch.waiting, ch.turn, ch.elder, ch.younger = false, 0, nil, nil
	l.n--
	g := groupOf(ch)
	if l.groups[g]--; l.groups[g] == 0 {
		delete(l.groups, g)
	}
}

// offerRoom asks for the keys that wait, oldest first. After one that has to
// go on waiting, and that no child ends for, others of the same kind and owner
// are not asked again: the answer would be the same.
func (s *Shell) offerRoom() {
	full := make(map[tallyKey]bool, 1)
	for ch := s.line.head; ch != nil; {
		told := ch.told == messages.ChildWaiting
		if told && len(full) >= len(s.line.groups) {
			ch = s.line.untold
			continue
		}
		next := ch.younger
		switch g := groupOf(ch); {
		case s.pointless(ch):
		case told && full[g]:
		default:
			ending := s.endings
			s.ask(ch)
			if ch.waiting && s.endings == ending {
				full[g] = true
			}
		}
		ch = next
	}
}

// leaveLine forgets the keys that nothing waits for any more, because their
// work was settled by somebody else.
func (s *Shell) leaveLine() {
	for ch := s.line.head; ch != nil; {
		next := ch.younger
		s.pointless(ch)
		ch = next
	}
}

// unwait takes a key out of those that wait for capacity.
func (s *Shell) unwait(ch *child) {
	if ch.waiting {
		s.line.remove(ch)
	}
}
