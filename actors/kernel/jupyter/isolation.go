package jupyter

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/actors/kernel/walls"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/internal/pyenv"
	"github.com/coppice-run/coppice/internal/sandbox"
)

// isolate resolves what was asked for, or says why kernels of a gateway cannot have it. The
// walls stand around the gateway with its kernels: one that others use, or run, has none.
func isolate(asks kernel.Isolation, url string, shared, keep bool) (walls.Isolation, error) {
	i, err := walls.Absolute(asks)
	if err != nil {
		return walls.Isolation{}, err
	}
	switch asked := i.Level; {
	case asked == kernel.IsolationStrongest:
		i.Level = sandbox.Strongest().String()
		if len(i.Hosts) > 0 && !i.Network {
			i.Level = sandbox.AtMost(sandbox.Seccomp).String() // above, there is no way to the proxy
		}
	case asked == "", asked == kernel.IsolationPrivileges && (url != "" || shared):
		i.Level = kernel.IsolationOff
	}
	switch walled := kernel.Isolation(i).Walled(); {
	case walled && url != "":
		return walls.Isolation{}, fmt.Errorf("kernels of a server that somebody else runs cannot be isolated (%s was asked for); use the runner backend, or leave the URL out", asks.Level)
	case walled && keep:
		return walls.Isolation{}, fmt.Errorf("KeepSessions: the walls around kernels (isolation %s) end with their host; use the isolation %s, or leave KeepSessions out", asks.Level, kernel.IsolationOff)
	}
	return walls.Isolation(i), nil
}

// confinement is what a gateway and its kernels stand behind.
type confinement struct {
	rules sandbox.Rules
	env   []string
	user  *walls.User // whom all of them run as; nil: the host's
}

// confined returns that of a gateway: where the system's folder for temporary files is closed
// to it, with one that only it and its kernels use.
func confined(ctx context.Context, rt pyenv.Runtime, asks kernel.Isolation, folders *walls.Folders, out *walls.Egress, users *walls.Pool) (c confinement, err error) {
	i := walls.Isolation(asks)
	if i.Level == "" {
		i.Level = kernel.IsolationOff
	}
	level, err := i.Rung()
	if err != nil {
		return c, fmt.Errorf("isolate the kernels: %w", err)
	}
	temp := ""
	if level >= sandbox.Landlock {
		if temp, err = folders.Temporary(); err != nil {
			return c, err
		}
	}
	c.rules, err = i.Rules(rt.Path, temp)
	if err == nil && c.rules.Inside() {
		c.rules.Scratch, err = folders.Scratch()
	}
	if err == nil {
		c.env, err = out.Open(i, &c.rules, rt.Env)
	}
	if err != nil || level < sandbox.Landlock {
		return c, err
	}
	if c.rules.Users {
		if err := c.become(ctx, rt.Path, temp, users); err != nil {
			return c, fmt.Errorf("give the kernels a user of their own: %w", err)
		}
		temp = c.user.Folder()
		c.set("HOME", temp)
	}
	c.set("TMPDIR", temp)
	return c, nil
}

// become holds a user for the gateway.
func (c *confinement) become(ctx context.Context, python, temp string, pool *walls.Pool) error {
	err := walls.Reachable(python)
	if err != nil {
		return err
	}
	all, err := pool.Open(ctx, python, temp, c.rules)
	if err == nil {
		c.user, err = all.Lease()
	}
	return err
}

// set sets a variable of the environment.
func (c *confinement) set(name, value string) {
	c.env = slices.DeleteFunc(slices.Clone(c.env), func(entry string) bool { return strings.HasPrefix(entry, name+"=") })
	c.env = append(c.env, name+"="+value)
}

// process is the user as the gateway's process gets it.
func (c *confinement) process() *process.User {
	if c.user == nil {
		return nil
	}
	return c.user.Process()
}

// over gives the user back, when the gateway is gone: what it still runs is ended.
func (c *confinement) over() {
	if c.user != nil {
		c.user.GiveUp()
	}
}
