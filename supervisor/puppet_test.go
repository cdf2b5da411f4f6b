package supervisor_test

import (
	"errors"

	"github.com/coppice-run/coppice/supervisor"
)

// puppet is a child that does what the test says, and nothing else: it takes
// work and keeps it. All its fields but key belong to the actor; the test looks
// at them when the bubble is quiet.
type puppet struct {
	world *world
	key   string
	work  supervisor.Work
	block chan struct{}
}

// The orders of puppets.
type (
	finishCmd struct{}
	crashCmd  struct{}
	panicCmd  struct{}
	dieCmd    struct{}
	hangCmd   struct{ release chan struct{} }
)

func (p *puppet) Init(*supervisor.Ctx) error {
	p.world.lives(p.key, 1)
	return nil
}

func (p *puppet) Handle(c *supervisor.Ctx, msg any) error {
	switch m := msg.(type) {
	case supervisor.Work:
		if p.work.Seq() != 0 {
			p.world.problem("%s got work %v with work in hand", p.key, m.Msg)
		}
		p.world.begins(p.key, m.Msg.(int))
		p.work = m
	case finishCmd:
		work := p.work
		p.work = supervisor.Work{}
		if !c.Finish(work, "done") {
			p.world.problem("%s: work %v had an answer already", p.key, work.Msg)
		}
	case crashCmd:
		return errors.New("told to fail")
	case panicCmd:
		panic("told to panic")
	case dieCmd:
		return supervisor.ErrDone
	case hangCmd:
		p.world.lives(p.key, -1) // from here on it is a matter of time
		p.block = m.release
		<-m.release
	}
	return nil
}

func (p *puppet) Terminate(*supervisor.Ctx, supervisor.Exit) {
	if p.block == nil {
		p.world.lives(p.key, -1)
	}
}
