package workspace

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/coppice-run/coppice/internal/cgroup"
	"github.com/coppice-run/coppice/internal/process"
)

// groupTasks is what a workspace may start beyond its limit of processes before the system
// refuses: threads, which count like processes there, and what comes until the next look.
const groupTasks = 256

// groupTime bounds what is done with control groups: making room for them, and their end.
const groupTime = 2 * time.Second

// groups is where workspaces get their control groups, once one wants one.
type groups struct {
	mu    sync.Mutex
	tree  *cgroup.Tree // nil: none was wanted, or there are none; guarded by mu
	lacks error        // why there are none; guarded by mu
	asked bool         // guarded by mu
}

// open returns the tree; the error says why there is none.
func (g *groups) open(ctx context.Context) (*cgroup.Tree, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.asked {
		g.asked = true
		c, cancel := context.WithTimeout(ctx, groupTime)
		defer cancel()
		g.tree, g.lacks = cgroup.Open(c, cgroup.Options{Want: []string{cgroup.Memory, cgroup.PIDs, cgroup.CPU}})
	}
	return g.tree, g.lacks
}

func (g *groups) close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.tree == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), groupTime)
	defer cancel()
	return g.tree.Close(ctx)
}

// new makes the group of a workspace that has such limits, and says what keeps to them.
// nil: it has none. The error is an *OptionsError for what can be kept to by nothing here.
func (g *groups) new(ctx context.Context, t Total, inside, counted, looks bool) (*cgroup.Group, string, error) {
	switch {
	case !t.watched():
		return nil, "", nil
	case inside && t.Processes > 0 && !counted:
		return nil, "", &OptionsError{"total", "a limit of processes is not kept to where nothing counts those of a kernel of its own; leave it out"}
	case inside && t.Processors <= 0:
		return nil, keptInside, nil
	}
	if looks && process.Tallies && t.Processors <= 0 {
		return nil, keptByLooks, nil
	}
	tree, err := g.open(ctx)
	if err == nil && tree.Lacking() != "" {
		err = errors.New(tree.Lacking())
	}
	if err == nil {
		limits := cgroup.Limits{Memory: t.Memory, Processors: t.Processors}
		if inside { // looks know the sandboxes, of which one is ended and not all
			limits.Memory = 0
		} else if t.Processes > 0 {
			limits.Tasks = t.Processes + min(groupTasks, math.MaxInt-t.Processes)
		}
		group, err := tree.New(limits)
		if err != nil {
			return nil, "", err
		}
		if inside {
			return group, keptInside + "; processors by a control group that they are in", nil
		}
		return group, keptByGroup, nil
	}
	switch {
	case t.Processors > 0:
		return nil, "", &OptionsError{"total", fmt.Sprintf("a limit of processors needs a control group: %v; leave it out", err)}
	case !process.Tallies:
		return nil, "", &OptionsError{"total", "limits of memory and processes for a workspace as a whole are kept to on Linux alone; leave them out"}
	}
	return nil, keptByLooks + ", since there is no control group: " + err.Error(), nil
}
