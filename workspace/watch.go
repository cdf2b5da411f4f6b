package workspace

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

const (
	// lookEvery is how often a workspace is looked at in which something goes on, groupEvery
	// that where a control group counts what is in it, and restEvery one in which nothing does.
	// A look that takes long is made less often: lookShare is how many times as long the pause
	// after it is at least, up to restEvery.
	lookEvery  = 100 * time.Millisecond
	groupEvery = 20 * time.Millisecond
	restEvery  = time.Second
	lookShare  = 20
	// killTime bounds the end of one process.
	killTime = time.Second
)

// watch is the actor that keeps a workspace to the limits of all that is in it. Looks
// are made by a goroutine, one at a time, which Terminate joins.
type watch struct {
	w     *Workspace
	looks sync.WaitGroup
	// due is the number of the look that is next or is made, which is said by looking; again
	// says that something has begun meanwhile.
	due            uint64
	looking, again bool
}

// What the actor is told.
type (
	lookDue struct{ number uint64 }
	// begun says that something goes on, after nothing did.
	begun  struct{}
	looked struct {
		took time.Duration // without what was ended
		busy bool          // something goes on
	}
)

// Init has the first look made.
func (a *watch) Init(ctx *supervisor.Ctx) error {
	a.w.mu.Lock()
	a.w.woken = func() { ctx.Tell(begun{}) }
	a.w.mu.Unlock()
	ctx.After(a.every(), lookDue{a.due})
	return nil
}

// Handle makes looks.
func (a *watch) Handle(ctx *supervisor.Ctx, msg any) error {
	switch m := msg.(type) {
	case lookDue:
		if m.number == a.due && !a.looking {
			a.begin(ctx)
		}
	case begun:
		if a.again = a.looking; !a.looking {
			a.begin(ctx)
		}
	case looked:
		pause := restEvery
		if m.busy || a.again {
			pause = a.every()
		}
		a.due++
		a.looking, a.again = false, false
		ctx.After(max(pause, min(lookShare*m.took, restEvery)), lookDue{a.due})
	default:
		return supervisor.Unknown(msg)
	}
	return nil
}

// begin makes a look.
func (a *watch) begin(ctx *supervisor.Ctx) {
	a.looking = true
	c := ctx.Context()
	a.looks.Go(func() { ctx.Tell(a.look(c)) })
}

// every is how often the workspace is looked at while something goes on.
func (a *watch) every() time.Duration {
	if a.w.group != nil {
		return groupEvery
	}
	return lookEvery
}

// Terminate waits for the look that is made.
func (a *watch) Terminate(*supervisor.Ctx, supervisor.Exit) { a.looks.Wait() }

// look compares what there is with what there may be.
func (a *watch) look(ctx context.Context) (l looked) {
	w, begin := a.w, time.Now()
	most := w.o.Total
	if w.group != nil {
		w.lookAtGroup()
		if n, err := w.group.Members(); err == nil && !w.place.Inside && (most.Processes <= 0 || len(n) <= most.Processes) {
			return a.lookedAtGroup(ctx, len(n), begin)
		}
	}
	var t those
	t.kernels, t.running = w.roots()
	members, err := w.members(false, t.pids()...)
	if err != nil {
		return l // this system cannot tell, and such limits were refused
	}
	n := len(members)
	if w.place.Inside && most.Processes > 0 {
		var all map[int]int
		if n, all = w.countInside(ctx, t); n > most.Processes {
			a.crowded(ctx, boxes(members, t), t.running, n, all)
		}
	}
	l.took = time.Since(begin)
	var sum int64
	for _, m := range members {
		sum += max(m.Memory, 0)
	}
	w.mu.Lock()
	w.used.At, w.used.Processes = time.Now(), n
	if w.group == nil || w.place.Inside { // else the group has told its memory
		w.used.Memory = sum
	}
	l.busy = w.uses > 0 || len(members) > len(t.kernels)
	w.mu.Unlock()
	w.forgetKernels()
	if (w.group == nil || w.place.Inside) && most.Memory > 0 && sum > most.Memory {
		a.memory(ctx, members, t)
	}
	if !w.place.Inside && most.Processes > 0 && len(members) > most.Processes {
		w.tooMany(ctx, members, 0)
	}
	if l.busy {
		a.quota(ctx, t.kernels, t.running)
	}
	return l
}

// lookedAtGroup notes that the control group of the workspace holds n processes, no more than
// it may.
func (a *watch) lookedAtGroup(ctx context.Context, n int, begin time.Time) looked {
	w := a.w
	kernels, running := w.roots()
	w.mu.Lock()
	w.used.At, w.used.Processes = time.Now(), n
	l := looked{took: time.Since(begin), busy: w.uses > 0 || n > len(kernels)}
	w.mu.Unlock()
	w.forgetKernels()
	if l.busy {
		a.quota(ctx, kernels, running)
	}
	return l
}

// memory ends the biggest process, until what remains is not too much.
func (a *watch) memory(ctx context.Context, members []process.Member, t those) {
	w, most := a.w, a.w.o.Total.Memory
	var sum int64
	for i, m := range members { // what forks share with one another was counted for each
		if own, err := process.Proportional(m.PID); err == nil {
			members[i].Memory = own
		}
		sum += max(members[i].Memory, 0)
	}
	if w.place.Inside {
		a.sandboxes(ctx, boxes(members, t), t.running, sum)
		return
	}
	slices.SortFunc(members, func(x, y process.Member) int { return cmp.Compare(y.Memory, x.Memory) })
	of := map[int]int{}
	for _, p := range parties(members, t) {
		for _, m := range p.members {
			of[m.PID] = p.root
		}
	}
	for _, m := range members {
		if sum <= most || ctx.Err() != nil {
			return
		}
		had, may := apart(sum, most)
		done := "its biggest process was ended, with " + memory(m.Memory)
		a.end(ctx, of[m.PID], m, t.running, w.over(messages.LimitMemory, had+" of memory", may+" of memory", done))
		sum -= max(m.Memory, 0)
	}
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
		had, may := apart(sum, most)
		a.endSandbox(ctx, p, running, w.over(messages.LimitMemory, had+" of memory", may+" of memory", "its biggest sandbox was ended, with "+memory(size(p))))
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

// end ends one process, and says why to what it descends from.
func (a *watch) end(ctx context.Context, root int, m process.Member, running map[int]*Process, met messages.ResourceLimitExceeded) {
	a.w.met(&ending{root: root, met: met, pids: []int{m.PID}})
	if p := running[m.PID]; p != nil {
		_ = p.Stop(ctx, met.Error(), -1) // its own actor ends what this could not
		return
	}
	c, cancel := context.WithTimeout(ctx, killTime)
	defer cancel()
	process.KillAll(c, []process.Identity{m.Identity}) // the next look finds what is left
}

// quota stops what goes on in a workspace whose folder holds more than it may, and grows.
func (a *watch) quota(ctx context.Context, kernels map[int]root, running map[int]*Process) {
	w, most := a.w, a.w.o.Quota
	w.mu.Lock()
	folder, turn, seen := w.files, w.turn, w.disk
	w.mu.Unlock()
	if most <= 0 || folder == nil || !seen.due(turn) {
		return
	}
	begin := time.Now()
	bytes, err := folder.Usage(ctx)
	w.mu.Lock()
	if err != nil {
		w.disk.unseen(time.Since(begin))
		w.mu.Unlock()
		return
	}
	grows := w.disk.measured(bytes, most, turn, time.Since(begin))
	inside := slices.Clone(w.inside)
	w.mu.Unlock()
	if !grows {
		return
	}
	had, may := apart(bytes, most)
	met := w.over(messages.LimitDisk, had+" of files", may, "what ran was stopped; remove some")
	w.met(&ending{met: met})
	for _, k := range kernels {
		k.stop(met)
	}
	for _, stop := range inside {
		stop(met)
	}
	for _, p := range running {
		_ = p.Stop(ctx, met.Error(), -1) // as in end
	}
}

// inGroup is what is in the control group of the workspace: also what has left all else that it
// could be known by.
func (w *Workspace) inGroup() []int {
	if w.group == nil {
		return nil
	}
	pids, _ := w.group.Members() // without the group it is known as elsewhere
	return pids
}

// lookAtGroup notes what the control group of the workspace has ended and refused.
func (w *Workspace) lookAtGroup() {
	w.grouping.Lock()
	defer w.grouping.Unlock()
	u := w.group.Usage()
	w.mu.Lock()
	killed, refused := u.Killed > w.groupSaw.Killed, u.Refused > w.groupSaw.Refused
	w.groupSaw = u
	if u.Memory >= 0 {
		w.used.Memory = u.Memory
	}
	w.mu.Unlock()
	if killed {
		e := &ending{met: w.endedFor(refused), all: true}
		w.met(e)
		if w.group.Legacy() { // it has ended the biggest alone
			ctx, cancel := context.WithTimeout(context.Background(), killTime)
			defer cancel()
			w.group.End(ctx)
			w.mu.Lock()
			e.until = time.Now()
			w.mu.Unlock()
		}
	}
	// Where there are more processes than there may be, the next look finds who has started them.
	if refused && len(w.inGroup()) <= w.o.Total.Processes {
		w.met(&ending{failed: true, met: w.over(messages.LimitProcesses, count(w.o.Total.Processes+groupTasks)+" and threads", "no more", "the system has refused to start another")})
	}
}

// endedFor returns the limit for which the system has ended what was in the control group. Many
// processes take much memory: where there are more of them than there may be, or the system has
// refused one, that limit was met before. Where nothing of them is left to be seen, it is not known.
func (w *Workspace) endedFor(refused bool) messages.ResourceLimitExceeded {
	most, had, memory := w.o.Total.Processes, "", memory(w.o.Total.Memory)
	if n := len(w.inGroup()); n > most {
		had = count(n)
	} else if refused {
		had = count(most+groupTasks) + " and threads"
	}
	if most > 0 && had != "" {
		return w.over(messages.LimitProcesses, had, count(most), "the system has ended what was in it, which had more than "+memory+" by then")
	}
	return w.over(messages.LimitMemory, "more than "+memory, "no more", "the system has ended what was in it")
}

var _ supervisor.Behaviour = (*watch)(nil)
