package runner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/coppice-run/coppice/internal/cgroup"
	"github.com/coppice-run/coppice/internal/sandbox"
)

// What a control group has room for beyond the limits that its session keeps itself,
// so that those are met first: they cost a cell, not the session.
const (
	// groupReserve is memory that the session needs itself, and to tell that a limit
	// was met.
	groupReserve = 64 << 20
	// groupTasks is for threads, which count like processes, and for processes that
	// come while the session counts.
	groupTasks = 256
)

// removeWait bounds the end of what is left in a group.
const removeWait = 2 * time.Second

// groups is where a server's sessions get their control groups. nil: they get none.
type groups struct {
	tree   *cgroup.Tree
	limits cgroup.Limits
}

// group returns what a control group holds of limits, and its controllers.
func (l limits) group() (g cgroup.Limits, want []string) {
	if l.Memory > 0 {
		g.Memory, want = l.Memory+min(groupReserve, math.MaxInt64-l.Memory), append(want, cgroup.Memory)
	}
	if l.Processes > 0 {
		g.Tasks, want = l.Processes+min(groupTasks, math.MaxInt-l.Processes), append(want, cgroup.PIDs)
	}
	if l.Processors > 0 {
		g.Processors, want = l.Processors, append(want, cgroup.CPU)
	}
	return g, want
}

// check refuses limits that this system cannot keep to.
func (l limits) check() error {
	if l.Processors <= 0 {
		return nil
	}
	_, _, lacking, err := cgroup.Check(cgroup.Options{Want: []string{cgroup.CPU}})
	if err == nil && lacking != "" {
		err = errors.New(lacking)
	}
	if err != nil {
		return fmt.Errorf("a limit of processors needs a control group: %w", err)
	}
	return nil
}

// openGroups prepares the control groups of sessions, where the machine has any and a
// limit needs them. The second result says why there are no groups, or what they lack.
func (s *Server) openGroups(ctx context.Context, rules sandbox.Rules) (*groups, string) {
	if s.keep != nil {
		return nil, "control groups end with the host, and sessions outlive it (KeepSessions)"
	}
	if rules.Inside() {
		return nil, "sessions share a sandbox with a kernel of its own (isolation gvisor), and each keeps to its limits itself"
	}
	bounds, want := limits(s.o.Limits).group()
	if len(want) == 0 && s.o.groupBase == "" {
		return nil, "no limit was set that wants one"
	}
	c, cancel := context.WithTimeout(ctx, removeWait)
	defer cancel()
	tree, err := cgroup.Open(c, cgroup.Options{Want: want, Base: s.o.groupBase, Whole: true})
	if err != nil {
		return nil, err.Error()
	}
	s.mu.Lock()
	s.trees = append(s.trees, tree)
	s.mu.Unlock()
	return &groups{tree: tree, limits: bounds}, tree.Lacking()
}

// closeGroups removes the folders of the groups, when all sessions are gone.
func (s *Server) closeGroups() error {
	s.mu.Lock()
	trees := s.trees
	s.trees = nil
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), removeWait)
	defer cancel()
	var err error
	for _, t := range trees {
		err = errors.Join(err, t.Close(ctx))
	}
	return err
}

// new makes the group of a session. nil: it gets none.
func (g *groups) new() (*cgroup.Group, error) {
	if g == nil {
		return nil, nil //nolint:nilnil // a session without a group is as good
	}
	return g.tree.New(g.limits)
}

// unused removes a group in which no session came to be.
func unused(g *cgroup.Group) error {
	if g == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), removeWait)
	defer cancel()
	return g.Remove(ctx)
}

// Groups reports which of the limits are kept to by control groups, by the names of
// their controllers, and why the others are not: those of memory and processes are
// then kept to by each process and by counting. It waits while the server starts;
// the error is why it could not.
func (s *Server) Groups(ctx context.Context) (controllers []string, why string, err error) {
	p, err := s.places.Await(ctx, nil, nil)
	if err != nil {
		return nil, "", err
	}
	if p.groups == nil {
		return nil, p.noGroups, nil
	}
	return p.groups.tree.Controllers(), p.noGroups, nil
}

// leaveGroup removes the session's group, after its process has ended, and notes whether
// it was ended for its memory.
func (i *Interpreter) leaveGroup() {
	if i.group == nil {
		return
	}
	i.outOfMemory = i.group.Usage().Killed > 0
	ctx, cancel := context.WithTimeout(context.Background(), removeWait)
	defer cancel()
	_ = i.group.Remove(ctx) // what stays is found by the next host
}

// endedForMemory reports whether the session was ended for what its group used.
func (i *Interpreter) endedForMemory() bool {
	select {
	case <-i.done:
		return i.outOfMemory
	default:
		return false
	}
}

// outOfMemoryText says why the system has ended a session.
func (l limits) outOfMemoryText() string {
	return fmt.Sprintf("the session and what it had started used more than %d MiB of memory together, and the system ended all of it", (l.Memory+groupReserve)>>20)
}

// refused returns how many processes the group has refused, 0 without one.
func (i *Interpreter) refused() int64 {
	if i.group == nil || i.limits.Processes <= 0 {
		return 0
	}
	return i.group.Usage().Refused
}
