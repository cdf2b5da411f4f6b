package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/messages"
)

// mostInside is how many kernels without numbers are remembered: the newest.
const mostInside = 1024

// beganInside remembers how a kernel is stopped that this system does not see.
func (w *Workspace) beganInside(stop func(messages.ResourceLimitExceeded)) {
	if !w.place.Inside || !w.limited() {
		return
	}
	w.takeSandbox()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.inside) == mostInside {
		w.inside = slices.Delete(w.inside, 0, 1)
	}
	w.inside = append(w.inside, stop)
}

// takeSandbox puts what the kernels run in into the control group of the workspace: what it starts
// from then on begins there.
func (w *Workspace) takeSandbox() {
	if w.group == nil || w.place.Brood == nil {
		return
	}
	from, _ := w.place.Brood.Brood()
	if from.PID <= 0 {
		return
	}
	below, err := process.Descendants(from)
	for _, id := range append([]process.Identity{from}, below...) {
		if failed := w.group.Take(id.PID); failed != nil && process.Alive(id) {
			err = errors.Join(err, failed)
		}
	}
	if err != nil {
		w.set.o.Logger.Warn("a sandbox is not in the control group of its workspace", "workspace", w.name, "err", err)
	}
}

// runIn is the process that kernels without numbers run in.
func (w *Workspace) runIn() []int {
	if !w.place.Inside || w.place.Brood == nil {
		return nil
	}
	if from, _ := w.place.Brood.Brood(); from.PID > 0 {
		return []int{from.PID}
	}
	return nil
}

// countTime bounds the count of one sandbox.
const countTime = 5 * time.Second

// countInside counts what runs in the sandboxes of the workspace, in all of them and in that of
// each process; 0 is that of the kernels. What cannot be counted just now has nothing.
func (w *Workspace) countInside(ctx context.Context, t those) (sum int, all map[int]int) {
	all = map[int]int{}
	count := func(root, pid int) {
		c, cancel := context.WithTimeout(ctx, countTime)
		defer cancel()
		if n, err := w.place.Count(c, pid); err == nil {
			all[root] = n
			sum += n
		}
	}
	for _, pid := range w.runIn() {
		count(0, pid)
	}
	for pid := range t.running {
		count(pid, pid)
	}
	return sum, all
}

// boxes puts members together by the sandbox that they belong to: those of a process, and those of
// the kernels, which is 0.
func boxes(members []process.Member, t those) []*party {
	kernels := &party{}
	all := slices.DeleteFunc(parties(members, t), func(p *party) bool {
		if p.root <= 0 {
			kernels.members = append(kernels.members, p.members...)
		}
		return p.root <= 0
	})
	if len(kernels.members) > 0 {
		all = append(all, kernels)
	}
	return all
}

// crowded ends the sandbox in which most runs: there are n processes in all.
func (a *watch) crowded(ctx context.Context, parts []*party, running map[int]*Process, n int, all map[int]int) {
	if len(parts) == 0 {
		return
	}
	p := slices.MaxFunc(parts, func(x, y *party) int { return cmp.Compare(all[x.root], all[y.root]) })
	a.endSandbox(ctx, p, running, a.w.over(messages.LimitProcesses, count(n), count(a.w.o.Total.Processes), fmt.Sprintf("the sandbox with most of them was ended, with %d", all[p.root])))
}

// sandboxes ends the biggest sandbox, until what remains is not too much.
func (a *watch) sandboxes(ctx context.Context, parts []*party, running map[int]*Process, sum int64) {
	w, most := a.w, a.w.o.Total.Memory
	size := func(p *party) (bytes int64) {
		for _, m := range p.members {
			bytes += max(m.Memory, 0)
		}
		return bytes
	}
	slices.SortFunc(parts, func(x, y *party) int { return cmp.Compare(size(y), size(x)) })
	for _, p := range parts {
		if sum <= most || ctx.Err() != nil {
			return
		}
		a.endSandbox(ctx, p, running, w.over(messages.LimitMemory, memory(sum), memory(most), "its biggest sandbox was ended, with "+memory(size(p))))
		sum -= size(p)
	}
}

// endSandbox ends all together that a sandbox runs in, for what is left of one waits for the rest,
// and says why to what was in it.
func (a *watch) endSandbox(ctx context.Context, p *party, running map[int]*Process, met messages.ResourceLimitExceeded) {
	e := &ending{root: p.root, met: met, all: p.root == 0}
	ids := make([]process.Identity, 0, len(p.members))
	for _, m := range p.members {
		e.pids, ids = append(e.pids, m.PID), append(ids, m.Identity)
	}
	a.w.met(e)
	if one := running[p.root]; one != nil {
		_ = one.Stop(ctx, met.Error(), -1) // its own actor ends what this could not
		return
	}
	c, cancel := context.WithTimeout(ctx, killTime)
	defer cancel()
	process.KillAll(c, ids) // the next look finds what is left
}
