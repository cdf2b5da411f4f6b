package supervisor

import (
	"errors"
	"fmt"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// propose has a key without a child get one. Keys are served in the order in
// which they came here: one whose child has just made room stands behind those
// that wait already.
func (s *Supervisor) propose(ch *child) {
	if s.pointless(ch) {
		return
	}
	if err := s.specify(ch); err != nil {
		exit := &Exit{Kind: messages.ExitFailed, Err: err}
		s.unserveQueue(ch, ErrStartFailed, exit)
		s.forget(ch, exit)
		return
	}
	if s.table[ch.spec.Key] != ch || ch.live != nil {
		return // the Handler ended it
	}
	if !ch.waiting {
		s.setState(ch, messages.ChildWaiting)
		s.waitlist.add(ch)
	}
	if s.waitlist.n > 1 {
		s.room = true
		return
	}
	s.ask(ch)
}

var nothingWaits = &Exit{Kind: messages.ExitNormal, Err: errors.New("nothing waits for it any more")}

// pointless forgets a key that nothing waits for.
func (s *Supervisor) pointless(ch *child) bool {
	ch.queue.trim()
	if ch.queue.len() > 0 || ch.revive {
		return false
	}
	s.forget(ch, nothingWaits)
	return true
}

// ask asks the strategy whether a key that waits may start.
func (s *Supervisor) ask(ch *child) {
	s.setState(ch, messages.ChildWaiting)
	d, _ := s.decide(strategy.Spawning{Key: ch.spec.Key}, ch)
	switch d.Verb {
	case strategy.VerbWait:
		s.waitlist.told(ch)
		s.to(ch, messages.ChildWaiting, nil)
	case strategy.VerbStop, strategy.VerbAbandon:
		s.refuse(ch, &d.Exit)
	default:
		s.unwait(ch)
		s.spawn(ch)
	}
}

// specify asks the Handler how to make the child, once for each time that the
// key comes to have one.
func (s *Supervisor) specify(ch *child) error {
	if ch.specified || ch.queue.len() == 0 && ch.spec.New != nil {
		return nil
	}
	if s.o.Handler == nil {
		return fmt.Errorf("no child %q: %w", ch.spec.Key, ErrNoProcess)
	}
	var w Work
	if ch.queue.len() > 0 {
		w = ch.queue.peek()
	}
	var spec Spec
	var err error
	if !s.protect(func() error { spec, err = s.o.Handler.Spec(s, ch.spec.Key, w); return nil }) {
		return fmt.Errorf("make the child %q: %w", ch.spec.Key, s.failure)
	}
	if err != nil {
		return err
	}
	spec.Key = ch.spec.Key
	ch.spec, ch.specified = &spec, true
	return nil
}

// refuse ends a key that the strategy does not let start.
func (s *Supervisor) refuse(ch *child, exit *Exit) {
	kind := ErrStartFailed
	switch exit.Kind {
	case messages.ExitOverloaded:
		kind = ErrOverloaded
	case messages.ExitExhausted:
		kind = ErrExhausted
	}
	s.unserveQueue(ch, kind, exit)
	s.forget(ch, exit)
}

// offerRoom asks for the keys that wait, oldest first. After one that has to
// go on waiting, and that no child ends for, others of the same kind and owner
// are not asked again: the answer would be the same.
func (s *Supervisor) offerRoom() {
	full := make(map[tallyKey]bool, 1)
	for ch := s.waitlist.head; ch != nil; {
		told := ch.told == messages.ChildWaiting
		if told && len(full) >= len(s.waitlist.groups) {
			ch = s.waitlist.untold
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

// leaveWaitlist forgets the keys that nothing waits for any more, because their
// work was settled elsewhere.
func (s *Supervisor) leaveWaitlist() {
	for ch := s.waitlist.head; ch != nil; {
		next := ch.younger
		s.pointless(ch)
		ch = next
	}
}

// unwait takes a key out of those that wait for capacity.
func (s *Supervisor) unwait(ch *child) {
	if ch.waiting {
		s.waitlist.remove(ch)
	}
}
