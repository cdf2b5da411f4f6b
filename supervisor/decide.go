package supervisor

import (
	"cmp"
	"slices"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// decide asks the strategy about an event and does what it says about other
// children than self. What it says about self is returned; grouped says that a
// group restart has taken self over and nothing is left to do.
func (s *Supervisor) decide(ev strategy.Event, self *child) (d strategy.Directive, grouped bool) {
	if s.o.Strategy == nil || s.ending != nil {
		return strategy.Directive{}, false
	}
	var all []strategy.Directive
	s.protect(func() error { all = s.o.Strategy.Decide(tableView{&s.children}, ev); return nil })
	if len(all) == 0 {
		return strategy.Directive{}, false
	}
	all = strategy.Severest(all)
	if i := slices.IndexFunc(all, func(d strategy.Directive) bool { return d.Verb == strategy.VerbEscalate }); i >= 0 {
		s.escalate(&all[i])
		return strategy.Directive{}, false
	}
	why := cause(ev)
	group := s.groupRestart(all, why)
	for i := range all {
		o := &all[i]
		s.announce(o)
		ch := s.table[o.Key]
		switch {
		case ch == nil:
		case slices.Contains(group, ch):
			grouped = grouped || ch == self
		case ch == self:
			d = *o
		default:
			s.apply(ch, o, why)
		}
	}
	return d, grouped
}

// cause is the exit that children get which are restarted because of an event
// of another one.
func cause(ev strategy.Event) *Exit {
	exit := strategy.Exitf(messages.ExitShutdown, "restarted by its supervisor")
	if key := ev.Subject(); key != "" {
		exit = strategy.Exitf(messages.ExitShutdown, "restarted together with %s", key)
	}
	return &exit
}

// escalate ends the supervisor.
func (s *Supervisor) escalate(d *strategy.Directive) {
	s.announce(d)
	if !d.Exit.Failure() {
		s.fail(d.Exit)
		return
	}
	exit := d.Exit
	if exit.Kind != messages.ExitEscalated {
		exit = Exit{Kind: messages.ExitEscalated, Err: d.Exit}
	}
	s.fail(exit)
}

// apply does what was decided about a child that the event was not about.
func (s *Supervisor) apply(ch *child, d *strategy.Directive, why *Exit) {
	switch {
	case d.Verb == strategy.VerbRestart && ch.live != nil && ch.next == sequelOpen:
		ch.after = d.After
		s.stop(ch, why, sequelAgain)
	case d.Verb == strategy.VerbRestart && ch.live == nil && ch.static && ch.group == groupNone &&
		(ch.state == messages.ChildGone || ch.state == messages.ChildFailed):
		ch.after = d.After
		s.again(ch)
	case d.Verb == strategy.VerbAbandon && ch.live != nil:
		next, grouped := ch.next, false
		if next == sequelOpen {
			next, grouped = s.afterStop(ch, d)
		}
		if !grouped {
			s.abandon(ch, &d.Exit, next)
		}
	case d.Verb == strategy.VerbHibernate:
		if h, ok := s.o.Handler.(Hibernator); ok && ch.state == messages.ChildIdle && ch.queue.len() == 0 {
			s.protect(func() error { h.Hibernate(s, d.Key, d.Exit); return nil })
		}
	case d.Verb != strategy.VerbStop && d.Verb != strategy.VerbAbandon:
	case ch.live != nil:
		if ch.next != sequelOpen {
			return
		}
		if next, grouped := s.afterStop(ch, d); !grouped {
			s.stop(ch, &d.Exit, next)
		}
	case ch.state == messages.ChildWaiting:
		s.refuse(ch, &d.Exit)
	default: // failed, or waiting for its restart
		s.unserveQueue(ch, ErrEnded, &d.Exit)
		s.forget(ch, &d.Exit)
	}
}

// afterStop is what follows a Stop or Abandon of a child that did not report a
// failure itself. When the reason is a failure, such as a heartbeat that is
// missing, the strategy is asked about it as about any other failure, so that
// one policy for restarts holds for both. True: a group restart has taken the
// child over.
func (s *Supervisor) afterStop(ch *child, d *strategy.Directive) (next sequel, grouped bool) {
	if !d.Exit.Failure() || d.Exit.Kind == messages.ExitExhausted || !ch.up() {
		if d.Exit.Failure() {
			s.count(ch)
		}
		return ch.afterFailure(d), false
	}
	_, next, grouped = s.judge(ch, &d.Exit, ch.inLast(ch.live.begun()))
	if next == sequelOpen {
		next = ch.afterFailure(d)
	}
	return next, grouped
}

// announce tells the watchers what a strategy decided.
func (s *Supervisor) announce(d *strategy.Directive) {
	ch := s.table[d.Key]
	if d.Verb <= strategy.VerbResume || !s.sys.events.watched() || d.Verb == strategy.VerbWait && ch != nil && ch.told == messages.ChildWaiting {
		return
	}
	ev := messages.Decided{At: s.Now(), Path: cmp.Or(s.ctx.c.slot.path, s.ctx.c.slot.name), Directive: d.Verb.String(), After: d.After}
	if ch != nil {
		ev.Path = ch.slot.path
	}
	if d.Exit.Kind != "" {
		v := d.Exit.Value()
		ev.Exit = &v
	}
	s.sys.events.emit(ev)
}
