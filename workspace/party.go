package workspace

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/messages"
)

// nobody is the root of what is known to be of no kernel and no process that lives.
const nobody = -1

// party is what one kernel or process of the workspace has started, itself included. What
// has left it is known by its part ([process.Part]). With root [nobody] it is what is left
// of one that has ended, with root 0 what has no part: something that has left its own, or
// is about to become a kernel.
type party struct {
	root    int
	part    process.Part
	members []process.Member
}

// those are the kernels and the processes of a workspace at one moment.
type those struct {
	kernels map[int]root
	running map[int]*Process
	// waits are copies of kernels that no one has begun yet. forked is what descends from
	// the process that kernels are forked from: what is of no kernel there becomes one.
	waits, forked map[int]bool
	// given is a kernel that is given up, 0 for none: it ends with what it has started.
	given int
}

// pids returns the numbers of the kernels and processes.
func (t those) pids() []int {
	return slices.AppendSeq(slices.Collect(maps.Keys(t.kernels)), maps.Keys(t.running))
}

// begins reports whether a process is a kernel or a process of the workspace.
func (t those) begins(pid int) bool {
	_, k := t.kernels[pid]
	_, p := t.running[pid]
	return k || p
}

// parts returns which of them has which part.
func (t those) parts() map[process.Part]int {
	of := make(map[process.Part]int, len(t.kernels)+len(t.running))
	for pid, k := range t.kernels {
		of[k.part] = pid
	}
	for pid, p := range t.running {
		of[p.part] = pid
	}
	return of
}

// now returns the kernels and the processes of the workspace as they are. Whoever wants to
// end processes asks after it has looked for them, which are members: what became a kernel
// meanwhile is one.
func (w *Workspace) now(members []process.Member) those {
	t := those{waits: map[int]bool{}, forked: map[int]bool{}}
	if w.place.Brood != nil {
		from, waiting := w.place.Brood.Brood()
		if from.PID > 0 {
			t.forked = below(from.PID, members)
		}
		for _, pid := range waiting {
			t.waits[pid] = true
		}
	}
	t.kernels, t.running = w.roots()
	return t
}

// below returns those of members that descend from a process, without itself.
func below(from int, members []process.Member) map[int]bool {
	parents := make(map[int]int, len(members))
	for _, m := range members {
		parents[m.PID] = m.Parent
	}
	found := map[int]bool{}
	for _, m := range members {
		at := m.Parent
		for range members {
			parent, known := parents[at]
			if at == from || !known {
				break
			}
			at = parent
		}
		if at == from {
			found[m.PID] = true
		}
	}
	return found
}

// members returns what is in the workspace, with those of roots. Where it has a control group, all of
// it is in there, and nothing else of the machine is looked at, nor memory; what has left its group is
// found where all says so.
func (w *Workspace) members(all bool, roots ...int) ([]process.Member, error) {
	if w.group == nil || w.place.Inside || all {
		return process.Tally(w.mark, slices.Concat(roots, w.runIn(), w.inGroup()))
	}
	pids := append(w.inGroup(), roots...)
	slices.Sort(pids)
	return process.TallyOf(slices.Compact(pids))
}

// parties puts members together by what they descend from, or have descended from.
func parties(members []process.Member, t those) []*party {
	by := make(map[int]process.Member, len(members))
	for _, m := range members {
		by[m.PID] = m
	}
	type key struct {
		root int
		part process.Part
	}
	parts, all := t.parts(), map[key]*party{}
	for _, m := range members {
		at, of := m, key{}
		for range members {
			if t.begins(at.PID) {
				of.root = at.PID
				break
			}
			parent, ok := by[at.Parent]
			if !ok {
				break
			}
			at = parent
		}
		if of.root == 0 && m.Part != 0 {
			if of.root = parts[m.Part]; of.root == 0 {
				of = key{nobody, m.Part}
			}
		}
		if all[of] == nil {
			all[of] = &party{root: of.root, part: of.part}
		}
		all[of].members = append(all[of].members, m)
	}
	return slices.Collect(maps.Values(all))
}

// prey returns what of a party may be ended: not a kernel, nor what is about to become one,
// but a process of the workspace with all that it has started.
func (p *party) prey(t those) []process.Identity {
	var ids []process.Identity
	for _, m := range p.members {
		_, kernel := t.kernels[m.PID]
		if kernel && m.PID != t.given || t.waits[m.PID] || p.root <= 0 && t.forked[m.PID] {
			continue
		}
		ids = append(ids, m.Identity)
	}
	return ids
}

const (
	// partyTime bounds the end of what one of them has started, which may go on starting
	// more, and stoppedTime that of what came until its cell had ended.
	partyTime   = 5 * time.Second
	stoppedTime = 2 * time.Second
	// quietLooks is how often in a row nothing has to be found of a party that is ended: one
	// that starts another and ends, while the table of processes is read, is in neither place.
	quietLooks = 2
	// askAgain is how often a kernel that goes on starting processes is stopped again: Python
	// drops an interrupt that comes while it runs what is registered for a fork.
	askAgain = 200 * time.Millisecond
)

// tooMany stops what has started most of the processes, where there are still more than there may
// be. members are those that were just seen, nil: they are looked for, as they are where somebody
// else was at it. over is a kernel whose cell has ended, 0 for none: it
// has nothing to stop. Whoever learns of the limit waits until it is over: what a later cell starts
// is not ended.
func (w *Workspace) tooMany(ctx context.Context, members []process.Member, over int) {
	if !w.parting.TryLock() {
		w.parting.Lock()
		members = nil
	}
	defer w.parting.Unlock()
	if members == nil {
		var t those
		t.kernels, t.running = w.roots()
		var err error
		if members, err = w.members(false, t.pids()...); err != nil {
			return
		}
	}
	t := w.now(members)
	if len(members) <= w.o.Total.Processes { // somebody else has seen to it
		return
	}
	ctx, cancel := context.WithTimeout(ctx, partyTime)
	defer cancel()
	var biggest *party
	most := 0
	for _, p := range parties(members, t) {
		n := len(p.members)
		if p.root <= 0 { // what is about to become a kernel is stopped by no one
			n = len(p.prey(t))
		}
		if n > most || n == most && biggest != nil && biggest.root <= 0 {
			biggest, most = p, n
		}
	}
	if biggest == nil {
		return
	}
	e := &ending{root: biggest.root, met: w.over(messages.LimitProcesses, count(len(members)), count(w.o.Total.Processes), "what has started most of them was stopped")}
	if e.root <= 0 { // one of them may have become a kernel, or be a process that has just begun
		for _, id := range biggest.prey(t) {
			e.pids = append(e.pids, id.PID)
		}
	}
	w.met(e)
	part, again := biggest.part, func() {}
	if p := t.running[biggest.root]; p != nil {
		part = p.part
		_ = p.Stop(ctx, e.met.Error(), -1) // its own actor ends what this could not
	} else if k := t.kernels[biggest.root]; k.stop != nil {
		if part = k.part; biggest.root != over {
			again = func() { k.stop(e.met) }
		}
		again()
	}
	w.endParty(ctx, biggest.root, part, again, 0)
	w.mu.Lock()
	e.until = time.Now()
	w.mu.Unlock()
}

// endParty ends what a kernel or a process has started, and a process itself, until nothing
// is found of it any more; while something is, again is called now and then.
// given is a kernel that ends with it, 0 for none. w.parting is held.
func (w *Workspace) endParty(ctx context.Context, root int, part process.Part, again func(), given int) {
	asked, all := time.Now(), w.group == nil
	for quiet := 0; quiet < quietLooks && ctx.Err() == nil; {
		members, err := w.members(all, root)
		if err != nil {
			return
		}
		t, found := w.now(members), []process.Identity(nil)
		t.given = given
		for _, p := range parties(members, t) {
			if p.root == root && root != nobody || p.root == nobody && p.part == part {
				found = append(found, p.prey(t)...)
			}
		}
		if len(found) == 0 && !all {
			all = true // nothing of it is left in the group
			continue
		}
		if len(found) == 0 {
			quiet++
			continue
		}
		quiet, all = 0, w.group == nil
		if time.Since(asked) >= askAgain { // it goes on: what was asked of it was lost
			asked = time.Now()
			again()
		}
		process.KillAll(ctx, found)
	}
}

// Stopped ends what a cell has started that was stopped for a limit of processes, before its
// result is given: what came while it was being stopped, too. A kernel that is lost, or given
// up, ends with it.
func (w *Workspace) Stopped(pid int, met messages.ResourceLimitExceeded, lost bool) {
	if met.Limit != messages.LimitProcesses || w.place.Inside { // where it has ended with its sandbox
		return
	}
	w.parting.Lock()
	defer w.parting.Unlock()
	w.mu.Lock()
	part := w.kernels[pid].part
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), stoppedTime)
	defer cancel()
	given := 0
	if lost {
		given = pid
	}
	w.endParty(ctx, pid, part, func() {}, given)
}
