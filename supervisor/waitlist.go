package supervisor

// waitlist is the keys that wait for capacity, in the order of their turns, linked
// through elder and younger. Those that have not been asked for yet are its end.
// The Spec of a key does not change while it stands in it.
type waitlist struct {
	head, tail *child
	untold     *child // the first that was not asked for, nil if there is none
	n          int
	groups     map[tallyKey]int // how many of each kind and owner stand in it
	turns      uint64           // how many have come, ever
}

// add puts ch, which is in no list, at the end.
func (l *waitlist) add(ch *child) {
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
func (l *waitlist) told(ch *child) {
	if l.untold == ch {
		l.untold = ch.younger
	}
}

func (l *waitlist) remove(ch *child) {
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
