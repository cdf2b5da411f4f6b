package supervisor

import "github.com/coppice-run/coppice/messages"

// control handles what the children, the timer and the system have reported.
func (s *Supervisor) control() error {
	if s.batch != nil { // it may have stood still while the supervisor was suspended
		s.now = s.sys.now()
		s.moved()
		s.settle()
	}
	s.readBox()
	return s.failed()
}

// readBox empties the box. It goes on where it was when the goroutine was
// ended under it, so that no report is lost to runtime.Goexit in a Handler.
func (s *Supervisor) readBox() {
	for {
		if s.read == len(s.reading) {
			s.reading, s.read = s.box.take(s.reading), 0
			if len(s.reading) == 0 {
				return
			}
		}
		m := s.reading[s.read]
		s.read++
		s.now = s.sys.now()
		s.on(m)
		s.settle()
	}
}

func (s *Supervisor) on(m ctl) {
	switch m.op {
	case ctlTimer:
		s.onTimer()
		return
	case ctlDrain:
		s.drainBelow(m.round)
		return
	case ctlSnapshot:
		s.describe(m.snap)
		return
	}
	if m.op == ctlBack {
		if s.returned(m.c) {
			s.room = true
		}
		return
	}
	ch := m.c.entry.(*child)
	if ch.live != m.c {
		return // an incarnation that was abandoned has nothing to say
	}
	switch m.op {
	case ctlUp:
		s.onUp(ch)
	case ctlWell:
		ch.failures, ch.restarts = nil, 0
	case ctlFinished:
		s.onFinished(ch, m.t)
	case ctlFail:
		s.onFail(ch, m.exit)
	case ctlDying:
		s.onDying(ch)
	case ctlGone:
		s.onGone(ch, m.exit)
	}
}

// settle does everything that follows from what has happened, until nothing
// does. Everything that touches several children, or calls the Handler, waits
// for settle, so that the tables are in order whenever code that is not ours
// sees them.
func (s *Supervisor) settle() {
	if s.fenced() {
		return
	}
	for {
		switch {
		case len(s.kicks) > 0:
			for i := 0; i < len(s.kicks); i++ {
				ch := s.kicks[i]
				s.kicks[i], ch.queued = nil, false
				s.step(ch)
			}
			s.kicks = again(s.kicks)
		case s.batch != nil && s.batch.moved:
			s.batch.moved = false
			s.advance()
		case s.room:
			s.room = false
			s.offerRoom()
		case s.noted < len(s.notes):
			s.tellHandler()
		default:
			s.notes, s.noted = again(s.notes), 0
			s.arm()
			return
		}
	}
}

// fenced reports whether the supervisor was abandoned: what it does from now on
// must not touch the tree, where another incarnation has taken its place.
func (s *Supervisor) fenced() bool { return s.ctx.c.phaseNow() == phaseOver }

// kick has step called for ch before the turn ends.
func (s *Supervisor) kick(ch *child) {
	if !ch.queued {
		ch.queued = true
		s.kicks = append(s.kicks, ch)
	}
}

// step does the next thing for a child that has no event of its own to wait
// for.
func (s *Supervisor) step(ch *child) {
	if s.table[ch.spec.Key] != ch {
		return // forgotten in the meantime
	}
	switch {
	case ch.live != nil:
		if ch.state == messages.ChildIdle {
			s.dispatch(ch)
		}
	case ch.state == messages.ChildRestarting:
		if ch.group == groupNone && ch.due == 0 {
			s.spawn(ch)
		}
	case ch.state == messages.ChildFailed:
		s.unserveQueue(ch, ErrExhausted, ch.final)
	case ch.static: // only a reset brings back one that ended for good
		if ch.state == messages.ChildGone {
			s.unserveQueue(ch, ErrEnded, ch.lastExit)
		}
	default:
		s.propose(ch)
	}
}

// tellHandler delivers the oldest note.
//
//go:noinline
func (s *Supervisor) tellHandler() {
	n := &note{}
	*n, s.notes[s.noted] = s.notes[s.noted], *n
	s.noted++
	switch {
	case n.err == nil:
		s.protect(func() error { s.o.Handler.Changed(s, n.changed); return nil })
	case n.w.Settled():
	case s.o.Handler == nil || !s.protect(func() error { s.o.Handler.Unserved(s, n.w, n.err); return nil }):
		n.w.Settle(n.err)
	}
}

// to moves a child to another state and announces it.
func (s *Supervisor) to(ch *child, state messages.ChildState, exit *Exit) {
	s.setState(ch, state)
	if ch.told == state {
		return
	}
	from := ch.told
	ch.told, ch.since = state, s.now
	if (s.o.Handler != nil || s.sys.events.watched()) && !s.fenced() {
		s.announceChange(ch, from, exit)
	}
}

//go:noinline
func (s *Supervisor) announceChange(ch *child, from messages.ChildState, exit *Exit) {
	ev := messages.ChildChanged{
		At: s.Now(), Path: ch.slot.path, Key: ch.spec.Key, Kind: ch.spec.Kind, Epoch: ch.epoch, From: from, To: ch.state,
	}
	if exit != nil {
		v := exit.Value()
		ev.Exit = &v
	}
	if ch.live != nil {
		if f := ch.live.facts.Load(); f != nil {
			ev.PID, ev.CopyOf = f.PID, f.CopyOf
		}
	}
	if s.o.Handler != nil {
		s.notes = append(s.notes, note{changed: ev})
	}
	if s.sys.events.watched() {
		s.sys.events.emit(ev)
	}
}
