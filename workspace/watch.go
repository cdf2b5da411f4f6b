package workspace

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/coppice-run/coppice/internal/machine"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

const (
	// lookEvery is how often a workspace is looked at in which something goes on, restEvery
	// one in which nothing does. A look that takes long is made less often: lookShare is how many
	// times as long the pause after it is at least, up to restEvery.
	lookEvery = 100 * time.Millisecond
	restEvery = time.Second
	lookShare = 20
	// diskEvery is how often its folder is measured at most, while something goes on, and
	// diskMost how long at most a big one is not measured besides.
	diskEvery = 500 * time.Millisecond
	// killTime bounds the end of one process, killRounds how often what a process has
	// started is ended that starts more meanwhile.
	diskMost   = 10 * time.Second
	killTime   = time.Second
	killRounds = 10
)

// watch is the actor that keeps a workspace to the limits of all that is in it. Looks
// are made by a goroutine, one at a time, which Terminate joins.
type watch struct {
	w     *Workspace
	looks sync.WaitGroup
	// measured is when the folder was measured, and disk what it held; they belong to the looks.
	measured time.Time
	disk     int64
}

// What the actor is told.
type (
	lookDue struct{}
	looked  struct {
		took time.Duration // without what was ended
		busy bool          // something goes on
	}
)

// Init has the first look made.
func (a *watch) Init(ctx *supervisor.Ctx) error {
	ctx.After(lookEvery, lookDue{})
	return nil
}

// Handle makes looks.
func (a *watch) Handle(ctx *supervisor.Ctx, msg any) error {
	switch m := msg.(type) {
	case lookDue:
		c := ctx.Context()
		a.looks.Go(func() {
			ctx.Tell(a.look(c))
		})
	case looked:
		pause := restEvery
		if m.busy {
			pause = lookEvery
		}
		ctx.After(max(pause, min(lookShare*m.took, restEvery)), lookDue{})
	default:
		return supervisor.Unknown(msg)
	}
	return nil
}

// Terminate waits for the look that is made.
func (a *watch) Terminate(*supervisor.Ctx, supervisor.Exit) { a.looks.Wait() }

// party is what descends from one kernel or process of the workspace, or, with root 0,
// what has left all of them.
type party struct {
	root    int
	members []process.Member
}

// look compares what there is with what there may be.
func (a *watch) look(ctx context.Context) (l looked) {
	w, begin := a.w, time.Now()
	kernels, running := w.roots()
	pids := make([]int, 0, len(kernels)+len(running))
	for pid := range kernels {
		pids = append(pids, pid)
	}
	for pid := range running {
		pids = append(pids, pid)
	}
	members, err := process.Tally(w.mark, pids)
	if err != nil {
		return l // this system cannot tell, and such limits were refused
	}
	l.took = time.Since(begin)
	var sum int64
	for _, m := range members {
		sum += max(m.Memory, 0)
	}
	w.mu.Lock()
	w.used.At, w.used.Memory, w.used.Processes = time.Now(), sum, len(members)
	l.busy = w.uses > 0 || len(members) > len(kernels)
	w.mu.Unlock()
	w.forgetKernels(members)
	if w.group != nil {
		w.lookAtGroup()
		return l
	}
	t := w.o.Total
	if t.Memory > 0 && sum > t.Memory {
		a.memory(ctx, members, kernels, running)
	}
	if t.Processes > 0 && len(members) > t.Processes {
		a.processes(ctx, members, kernels, running)
	}
	if l.busy {
		a.quota(ctx, kernels, running)
	}
	return l
}

// parties puts members together by what they descend from.
func parties(members []process.Member, kernels map[int]root, running map[int]*Process) map[int]*party {
	by := make(map[int]process.Member, len(members))
	for _, m := range members {
		by[m.PID] = m
	}
	all := map[int]*party{}
	for _, m := range members {
		at, of := m, 0
		for range members {
			_, k := kernels[at.PID]
			_, p := running[at.PID]
			if k || p {
				of = at.PID
				break
			}
			parent, ok := by[at.Parent]
			if !ok {
				break
			}
			at = parent
		}
		if all[of] == nil {
			all[of] = &party{root: of}
		}
		all[of].members = append(all[of].members, m)
	}
	return all
}

// memory ends the biggest process, until what remains is not too much.
func (a *watch) memory(ctx context.Context, members []process.Member, kernels map[int]root, running map[int]*Process) {
	w, most := a.w, a.w.o.Total.Memory
	var sum int64
	for i, m := range members { // what forks share with one another was counted for each
		if own, err := process.Proportional(m.PID); err == nil {
			members[i].Memory = own
		}
		sum += max(members[i].Memory, 0)
	}
	slices.SortFunc(members, func(x, y process.Member) int { return cmp.Compare(y.Memory, x.Memory) })
	of := map[int]int{}
	for _, p := range parties(members, kernels, running) {
		for _, m := range p.members {
			of[m.PID] = p.root
		}
	}
	for _, m := range members {
		if sum <= most || ctx.Err() != nil {
			return
		}
		done := "its biggest process was ended, with " + memory(m.Memory)
		a.end(ctx, of[m.PID], m, running, w.over(messages.LimitMemory, memory(sum), memory(most), done))
		sum -= max(m.Memory, 0)
	}
}

// end ends one process, and says why to what it descends from.
func (a *watch) end(ctx context.Context, root int, m process.Member, running map[int]*Process, met messages.ResourceLimitExceeded) {
	a.w.met(root, met)
	if p := running[m.PID]; p != nil {
		_ = p.Stop(ctx, met.Error(), -1) // its own actor ends what this could not
		return
	}
	c, cancel := context.WithTimeout(ctx, killTime)
	defer cancel()
	process.KillAll(c, []process.Identity{m.Identity}) // the next look finds what is left
}

// processes stops what has started most of them.
func (a *watch) processes(ctx context.Context, members []process.Member, kernels map[int]root, running map[int]*Process) {
	w := a.w
	var biggest *party
	for _, p := range parties(members, kernels, running) {
		if biggest == nil || len(p.members) > len(biggest.members) {
			biggest = p
		}
	}
	met := w.over(messages.LimitProcesses, count(len(members)), count(w.o.Total.Processes), "what has started most of them was stopped")
	w.met(biggest.root, met)
	p, k := running[biggest.root], kernels[biggest.root]
	switch {
	case p != nil:
		_ = p.Stop(ctx, met.Error(), -1) // as in end
	case k.stop != nil:
		k.stop(met)
	}
	for range killRounds {
		var ids []process.Identity
		for _, m := range biggest.members {
			if m.PID != biggest.root || p != nil {
				ids = append(ids, m.Identity)
			}
		}
		if len(ids) == 0 || ctx.Err() != nil {
			return
		}
		c, cancel := context.WithTimeout(ctx, killTime)
		process.KillAll(c, ids)
		cancel()
		again, err := process.Tally(w.mark, []int{biggest.root})
		if err != nil {
			return
		}
		now := parties(again, kernels, running)[biggest.root]
		if now == nil {
			return
		}
		biggest = now
	}
}

// quota stops what goes on in a workspace whose folder holds more than it may, and more
// than it did: what makes room goes on.
func (a *watch) quota(ctx context.Context, kernels map[int]root, running map[int]*Process) {
	w, most := a.w, a.w.o.Quota
	if most <= 0 || time.Since(a.measured) < diskEvery {
		return
	}
	w.mu.Lock()
	folder := w.files
	w.mu.Unlock()
	if folder == nil {
		return
	}
	begin := time.Now()
	bytes, err := folder.Usage(ctx)
	a.measured = time.Now().Add(min(lookShare*time.Since(begin), diskMost)) // a big folder is measured less often
	before := a.disk
	a.disk = bytes
	if err != nil || bytes <= most || bytes <= before {
		return
	}
	met := w.over(messages.LimitDisk, machine.Size(uint64(bytes))+" of files", machine.Size(uint64(most)), "what ran was stopped; remove some")
	w.met(0, met)
	for _, k := range kernels {
		k.stop(met)
	}
	for _, p := range running {
		_ = p.Stop(ctx, met.Error(), -1) // as in end
	}
}

// lookAtGroup notes what the control group of the workspace has ended and refused.
func (w *Workspace) lookAtGroup() {
	u := w.group.Usage()
	w.mu.Lock()
	killed, refused := u.Killed > w.groupSaw.Killed, u.Refused > w.groupSaw.Refused
	w.groupSaw = u
	if u.Memory >= 0 {
		w.used.Memory = u.Memory
	}
	w.mu.Unlock()
	if killed {
		w.met(0, w.over(messages.LimitMemory, "more than "+memory(w.o.Total.Memory), "no more", "the system has ended what was in it"))
	}
	if refused {
		w.met(0, w.over(messages.LimitProcesses, count(w.o.Total.Processes), "no more", "the system has refused to start another"))
	}
}

var _ supervisor.Behaviour = (*watch)(nil)
