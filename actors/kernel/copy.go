package kernel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// copyTimeout bounds one request for copies, by the chance of the session to make them. A copy of a session that holds
// gigabytes takes tens of milliseconds.
const copyTimeout = 30 * time.Second

// copyMost is how long it may take on a machine that has no processor for it.
const copyMost = 2 * time.Minute

// Copier is implemented by interpreters that can be copied while they live.
type Copier interface {
	// Copy makes a copy of the interpreter, with all that it has in memory, for
	// each name. The copies wait in the backend: one whose name is the ID of a
	// session's key is what the next Start for that key returns.
	//
	// The error is a *messages.ForkRefused when the interpreter cannot be copied
	// as it is; it then goes on as if nothing had been asked. Copy is called like
	// Execute, from one goroutine at a time and not while a cell runs.
	Copy(ctx context.Context, names []string) error
}

// copied is what the goroutine that made copies reports.
type copied struct {
	work supervisor.Work
	err  error
}

// fork makes copies of the interpreter. The supervisor gives the actor no other
// work meanwhile.
func (a *Actor) fork(w supervisor.Work, m messages.Fork) error {
	if a.interpGone() {
		// The next incarnation has nothing that would be worth a copy.
		err := a.explain(a.interp.Err())
		a.ctx.Finish(w, &messages.ForkRefused{Reason: messages.ForkNoKernel, Problem: lostReason(err)})
		return err
	}
	c, ok := a.interp.(Copier)
	if !ok {
		a.ctx.Finish(w, &messages.ForkRefused{Reason: messages.ForkUnsupported, Problem: "only the runner backend can copy a session"})
		return nil
	}
	ctx, from := a.ctx, subject(a.interp)
	a.pump(func() {
		bounded, done := opportunity.Within(a.life, opportunity.Budget{Opportunity: copyTimeout, Ceiling: copyMost}, from)
		defer done()
		ctx.Tell(copied{w, c.Copy(bounded, m.Names)})
	})
	return nil
}

func (a *Actor) copied(m copied) error {
	if m.err != nil {
		a.ctx.Finish(m.work, m.err)
		return nil
	}
	a.ctx.Finish(m.work, true)
	return nil
}

// sleepTimeout bounds the writing of a session, by the chance that it had to be written;
// sleepMost is how long it may take on a machine that has no processor for it.
const (
	sleepTimeout = 2 * time.Minute
	sleepMost    = 10 * time.Minute
)

// errUnused ends a kernel that was idle for long, and in which nothing has run.
var errUnused = errors.New("it was not used")

// slept is what the goroutine that wrote a session down reports.
type slept struct {
	work supervisor.Work
	kept messages.Hibernated
	err  error
	idle bool // no one asked for it
}

// wake puts what is kept of the session into a new interpreter. It runs in the goroutine
// that starts it.
func (a *Actor) wake(ctx context.Context, interp Interpreter) error {
	h := a.o.Hibernation
	info := interp.Info()
	if info.News != nil {
		a.restored = info.News.Restored
	}
	switch {
	case a.o.Once:
		return nil
	case info.Copy || info.Kept:
		Outlive(ctx, interp, nil, nil)
		if h != nil {
			h.Forget(a.o.Key) // what was kept is older than what is there
		}
		return nil
	case h == nil:
		Outlive(ctx, interp, nil, &News{Reason: a.pastReason(interp)})
		return nil
	}
	woken, err := h.Wake(ctx, a.o.Key, a.o.Owner, interp)
	if err == nil {
		Outlive(ctx, interp, woken.Owners, &News{Restored: woken.Restored, Reason: a.pastReason(interp)})
		a.restored = woken.Restored
		a.o.Served.Add(woken.Owners...)
		if woken.Restored != nil && len(woken.Owners) == 0 {
			a.o.Served.Add("")
		}
		return nil
	}
	c, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.o.CloseTimeout)
	defer cancel()
	return errors.Join(fmt.Errorf("restore the session, whose state is kept on disk: %w; reset the session to start over without it", err), interp.Close(c))
}

// hibernate writes the session down, and ends when it is kept. The supervisor gives the
// actor no other work meanwhile.
func (a *Actor) hibernate(w supervisor.Work, m messages.Hibernate) error {
	if cold, err := a.nothingToKeep(w); cold {
		if err == nil && m.Idle && a.o.Hibernation != nil && !a.interpGone() {
			return supervisor.Exit{Kind: messages.ExitEvicted, Err: errUnused}
		}
		return err
	}
	if m.Idle && a.refused != nil {
		a.ctx.Finish(w, a.refused)
		return nil
	}
	ctx, s, from := a.ctx, a.sleeper(), subject(a.interp)
	a.pump(func() {
		bounded, done := opportunity.Within(a.life, opportunity.Budget{Opportunity: sleepTimeout, Ceiling: sleepMost}, from)
		defer done()
		kept, err := a.o.Hibernation.Sleep(bounded, s)
		ctx.Tell(slept{w, kept, err, m.Idle})
	})
	return nil
}

// nothingToKeep refuses to write a session down that has nothing to be kept, or a host that
// does not keep it. The error is the interpreter's end.
func (a *Actor) nothingToKeep(w supervisor.Work) (bool, error) {
	refuse := func(reason messages.HibernateReason, problem string) {
		a.ctx.Finish(w, &messages.HibernateRefused{Reason: reason, Problem: problem})
	}
	switch {
	case a.interpGone():
		err := a.explain(a.interp.Err())
		refuse(messages.HibernateNoKernel, lostReason(err))
		return true, err
	case a.o.Hibernation == nil:
		refuse(messages.HibernateOff, "this host keeps no sessions on disk; set Options.Hibernate (coppice serve --hibernate lossless)")
	case !a.served && a.restored == nil:
		// A record of it would be restored in place of the news of what became of the
		// session before.
		refuse(messages.HibernateNoKernel, "nothing has run in its kernel; run a cell first")
	default:
		return false, nil
	}
	return true, nil
}

// saved is what the goroutine that made a checkpoint reports: a messages.Hibernated, or an
// error.
type saved struct {
	work   supervisor.Work
	answer any
}

// save writes the session down under a name. It goes on then; the supervisor gives the actor
// no other work meanwhile.
func (a *Actor) save(w supervisor.Work, m messages.SaveCheckpoint) error {
	if cold, err := a.nothingToKeep(w); cold {
		return err
	}
	ctx, s, from := a.ctx, a.sleeper(), subject(a.interp)
	a.pump(func() {
		bounded, done := opportunity.Within(a.life, opportunity.Budget{Opportunity: sleepTimeout, Ceiling: sleepMost}, from)
		defer done()
		kept, err := a.o.Hibernation.Save(bounded, s, m)
		if err != nil {
			ctx.Tell(saved{w, err})
			return
		}
		ctx.Tell(saved{w, kept})
	})
	return nil
}

// slept ends the actor when its session is kept.
func (a *Actor) slept(m slept) error {
	if m.err != nil {
		if refused, ok := errors.AsType[*messages.HibernateRefused](m.err); ok && refused.Reason != messages.HibernateFailed {
			a.refused = refused
		}
		if m.idle {
			a.o.Hibernation.Unkept(a.o.Key, false, m.err)
		}
		a.ctx.Finish(m.work, m.err)
		return nil
	}
	a.asleep, a.toTell = true, &m // once its end is known: whoever hears of it finds the session asleep
	return supervisor.Exit{Kind: messages.ExitHibernated}
}

// errInterrupted is why a session is not written down whose cell the end of the host has ended.
var errInterrupted = errors.New("a cell ran in it when its host ended")

// sleepAtLast writes down an idle session that ends because there is no room for it, or
// because its host does. What cannot be kept is lost, as without it, and the exit says why; who
// keeps sessions hears it too, since no call may be there that gets to know the exit.
func (a *Actor) sleepAtLast(on *supervisor.Ctx, exit supervisor.Exit, idle bool) {
	evicted := exit.Kind == messages.ExitEvicted
	if a.o.Hibernation == nil || a.o.Once || a.asleep || a.interpGone() || !evicted && !ofHost(exit) || !a.served && a.restored == nil {
		return
	}
	if !idle {
		a.o.Hibernation.Unkept(a.o.Key, true, errInterrupted)
		return
	}
	a.pumps.Wait() // one may be writing it down, and give up
	on.Note(supervisor.Facts{Detail: "hibernating", PID: a.interp.Info().PID})
	ctx, done := opportunity.Within(context.WithoutCancel(a.life), opportunity.Budget{Opportunity: sleepTimeout, Ceiling: sleepMost}, subject(a.interp))
	defer done()
	_, err := a.o.Hibernation.Sleep(ctx, a.sleeper())
	if err == nil { // the next call's result says what is there
		on.Explain("its state is kept on disk")
		return
	}
	a.o.Hibernation.Unkept(a.o.Key, true, err)
	problem := err.Error()
	if refused, is := errors.AsType[*messages.HibernateRefused](err); is {
		problem = refused.Problem
	}
	on.Explain("its state is lost, and not kept on disk: " + problem)
}

func (a *Actor) sleeper() Sleeper {
	s := Sleeper{Key: a.o.Key, Owners: a.o.Served.List(), Interpreter: a.interp, Backend: a.o.Backend, Env: a.o.Env}
	if len(s.Owners) == 0 { // what it has is there for the one it was started for
		s.Owners = []string{a.o.Owner}
	}
	if !a.served {
		s.Earlier = a.restored
	}
	return s
}
