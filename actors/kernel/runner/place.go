package runner

import (
	"context"
	"errors"

	"github.com/coppice-run/coppice/internal/cgroup"
	"github.com/coppice-run/coppice/internal/forkserver"
	"github.com/coppice-run/coppice/internal/ipctrace"
	"github.com/coppice-run/coppice/internal/ndjson"
	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/sandbox"
)

// place is where sessions are made: a fork server, or an interpreter to start.
type place struct {
	server *forkserver.Server
	// spares are sessions that were forked ahead. Run puts them in, Start takes
	// them out and says so in taken, which has as much room.
	spares chan *Interpreter
	taken  chan struct{}

	tracer *ipctrace.File // nil: tracing is off

	groups   *groups // nil: sessions get no control groups
	noGroups string  // why they get none, or what those lack

	users *userPool // nil: sessions have the host's user

	rules sandbox.Rules       // what the sessions are kept from
	why   string              // why there is no fork server
	spawn *forkserver.Options // set where there is no fork server
}

// session makes the process of a session, or takes one that waits, a spare, unless it has to
// be a new one.
func (p *place) session(ctx context.Context, isNew bool) (i *Interpreter, spare bool, err error) {
	if p.spawn != nil {
		i, err := p.make(func(g *cgroup.Group, u *ndjson.User) (*forkserver.Child, error) {
			return forkserver.Spawn(ctx, *p.spawn, g, u)
		})
		return i, false, err
	}
	for !isNew {
		select {
		case i := <-p.spares:
			p.taken <- struct{}{}
			if i.Err() == nil {
				return i, true, nil
			}
		default:
			isNew = true
		}
	}
	i, err = p.fork()
	return i, false, err
}

// gone reports whether the fork server has ended.
func (p *place) gone() bool {
	if p.server == nil {
		return false
	}
	select {
	case <-p.server.Done():
		return true
	default:
		return !p.server.Answers()
	}
}

// subject is who makes a session. The session itself is not known before it answers.
func (p *place) subject() opportunity.Subject {
	if p.server == nil {
		return nil
	}
	return p.server.Subject()
}

func (p *place) fork() (*Interpreter, error) { return p.make(p.server.Fork) }

// make makes a process in a control group and of a user of its own, where there are any.
func (p *place) make(do func(*cgroup.Group, *ndjson.User) (*forkserver.Child, error)) (*Interpreter, error) {
	g, err := p.groups.new()
	if err != nil {
		return nil, err
	}
	lease, err := p.users.lease()
	if err != nil {
		return nil, errors.Join(err, unused(g))
	}
	child, err := do(g, lease.user())
	if err != nil {
		lease.giveUp()
		return nil, errors.Join(err, unused(g))
	}
	i := newInterpreter(child, p.tracer, g, nil)
	i.own(lease)
	return i, nil
}

// keep forks as many spares as are missing, or ends all of them while memory is
// low, and returns how many are missing then. It does not wait for a fork. Only
// Run calls it.
func (p *place) keep(missing int, low bool) int {
	if low {
		return missing + p.close()
	}
	for ; missing > 0; missing-- {
		i, err := p.fork()
		if err != nil {
			return missing // it is tried again
		}
		p.spares <- i // there is room: as many were taken
	}
	return 0
}

// close ends the spares, and returns how many there were. Only Run calls it.
func (p *place) close() int {
	for n := 0; ; n++ {
		select {
		case i := <-p.spares:
			ctx, cancel := context.WithTimeout(context.Background(), closeWait)
			_ = i.Close(ctx) // it goes on trying; the session was never handed out
			cancel()
		default:
			return n
		}
	}
}
