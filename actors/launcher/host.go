package launcher

import (
	"context"
	"fmt"

	"github.com/coppice-run/coppice/internal/toolbox"
	"github.com/coppice-run/coppice/supervisor"
)

// Child is a launcher that stands in the supervision tree of a host. Programs have
// no use for it: they set Options.Launcher of package coppice.
type Child struct {
	o   Options
	box *toolbox.Box
}

// Within makes the launcher that a host wants in its tree. What o leaves out of Brand,
// Home, Env and Logger is that of host. The error matches [ErrOptions].
func Within(o, host Options) (*Child, error) {
	if o.OnEvent != nil {
		return nil, fmt.Errorf("%w: the events of a launcher in a host's tree are those of the host: use Options.OnEvent of package coppice", ErrOptions)
	}
	o.Brand, o.Home = either(o.Brand, host.Brand), either(o.Home, host.Home)
	if o.Env == nil {
		o.Env = host.Env
	}
	o.Logger = either(o.Logger, host.Logger)
	o, box, err := o.open()
	if err != nil {
		return nil, err
	}
	return &Child{o, box}, nil
}

// Spec is the launcher as a child of the tree.
func (c *Child) Spec() supervisor.Spec {
	return supervisor.Spec{Key: nameLauncher, Kind: nameLauncher, New: func() supervisor.Behaviour { return newActor(c.o) }}
}

// Attach returns the launcher, with its pins restored, once the tree stands. The tree
// ends it.
func (c *Child) Attach(ctx context.Context, system *supervisor.System) *Launcher {
	return c.attach(ctx, system, true)
}

func (c *Child) attach(ctx context.Context, system *supervisor.System, hosted bool) *Launcher {
	l := &Launcher{o: c.o, box: c.box, system: system, actor: system.Ref(nameLauncher), hosted: hosted}
	if err := l.restorePins(ctx); err != nil {
		c.o.Logger.Warn("restore the pins of tools", "err", err)
	}
	return l
}
