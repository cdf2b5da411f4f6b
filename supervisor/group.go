package supervisor

import (
	"slices"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// batch is an operation on several static children: their first start, or a
// restart together. They end one after the other in reverse order, and are
// started one after the other in order, each up before the next.
type batch struct {
	stop  []*child // by order; those that still have to end
	start []*child // by order; those that are not up yet; some of them in stop as well
	why   *Exit    // what children get that did not fail themselves
	moved bool     // something happened that advance waits for
}

func byOrder(a, b *child) int { return a.order - b.order }

func insert(l []*child, ch *child) []*child {
	i, found := slices.BinarySearchFunc(l, ch, byOrder)
	if found {
		return l
	}
	return slices.Insert(l, i, ch)
}

// groupRestart starts an operation if the directives restart more than one
// static child, or one that is part of an operation. It returns the children
// that it has taken over.
func (s *Supervisor) groupRestart(all []strategy.Directive, why *Exit) []*child {
	var group []*child
	joins := false
	for _, d := range all {
		if ch := s.table[d.Key]; d.Verb == strategy.VerbRestart && ch != nil && ch.static {
			group = append(group, ch)
			joins = joins || ch.group != groupNone
		}
	}
	if len(group) == 0 || len(group) == 1 && !joins {
		return nil
	}
	restarts := len(group)
	for _, d := range all {
		ch := s.table[d.Key]
		switch {
		case ch == nil || !ch.static:
		case slices.Contains(group[:restarts], ch):
			s.join(ch, why)
			ch.after = d.After
		case d.Verb == strategy.VerbStop && ch.live != nil && ch.next == sequelOpen && d.Exit.Kind == messages.ExitShutdown:
			group = append(group, ch) // ends in its turn, and stays down
			s.joinStop(ch)
		}
	}
	return group
}

// joinStop has a static child end in its turn.
func (s *Supervisor) joinStop(ch *child) {
	b := s.batch
	b.start = slices.DeleteFunc(b.start, func(o *child) bool { return o == ch })
	b.stop = insert(b.stop, ch)
	ch.group = groupStop
}

// join makes a static child part of the operation.
func (s *Supervisor) join(ch *child, why *Exit) {
	if s.batch == nil {
		s.batch = &batch{}
	}
	b := s.batch
	b.moved = true
	if why != nil {
		b.why = why
	}
	b.start = insert(b.start, ch)
	ch.group = groupStart
	if ch.live != nil {
		b.stop = insert(b.stop, ch)
		ch.group = groupStop
	} else if ch.state != messages.ChildRestarting && ch.epoch > 0 {
		s.again(ch)
	}
}

// ungroup takes a child out of the operation.
func (s *Supervisor) ungroup(ch *child) {
	if ch.group == groupNone {
		return
	}
	ch.group = groupNone
	is := func(o *child) bool { return o == ch }
	s.batch.stop = slices.DeleteFunc(s.batch.stop, is)
	s.batch.start = slices.DeleteFunc(s.batch.start, is)
	s.batch.moved = true
}

// moved has advance called before the turn ends.
func (s *Supervisor) moved() {
	if s.batch != nil {
		s.batch.moved = true
	}
}

// advance takes the operation as far as it can go now.
func (s *Supervisor) advance() {
	b := s.batch
	for len(b.stop) > 0 {
		ch := b.stop[len(b.stop)-1]
		if ch.live != nil {
			next := sequelAgain
			if !slices.Contains(b.start, ch) {
				next = sequelForget
			}
			if ch.next != next {
				s.stop(ch, b.exit(ch), next)
			}
			return
		}
		ch.group = groupStart
		b.stop = b.stop[:len(b.stop)-1]
	}
	if s.failure != nil {
		return // the supervisor is about to fail: what it starts now would end at once
	}
	for len(b.start) > 0 {
		ch := b.start[0]
		switch {
		case ch.live != nil && ch.up() && ch.next == sequelOpen:
			ch.group = groupNone
			b.start = b.start[1:]
		case ch.live != nil || ch.due != 0:
			return // it starts, ends, or waits for its delay
		case ch.after > 0:
			s.deadline(ch, ch.after)
			ch.after = 0
			return
		default:
			s.spawn(ch)
			return
		}
	}
	s.batch = nil
	if s.initial {
		s.initial = false
		s.ctx.Up()
	}
}

// exit is what a child is ended with: its own failure, or the group's reason.
func (b *batch) exit(ch *child) *Exit {
	if ch.state == messages.ChildSuspended && ch.failure != nil {
		return ch.failure
	}
	return b.why
}
