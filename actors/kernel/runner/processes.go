package runner

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/coppice-run/coppice/internal/cgroup"
	"github.com/coppice-run/coppice/internal/process"
)

// The session counts what descends from it. What has lost its parent does not: of `f | f &`, or
// of a program that puts itself into the background, nothing is left below the session. So the
// host counts, too: what is in the control group of the session, and where it has none, what has
// its mark and its part of that.

const (
	// countEvery is how often it counts while a cell runs.
	countEvery = 100 * time.Millisecond
	// endTime bounds the end of what may go on starting more.
	endTime = 5 * time.Second
	// quietLooks is how often in a row nothing has to be found: one that starts another and
	// ends, while the machine is looked at, is in neither place.
	quietLooks = 2
	// startTime is the least that a process takes to begin: a cell that was shorter cannot
	// have started many.
	startTime = 50 * time.Microsecond
	// censusPart is which part of the time is for looks at the machine, a tenth: where it has
	// many thousands of processes, they are further apart.
	censusPart = 10
)

// crowd watches how many processes a session has while a cell runs. nil: nothing is watched.
type crowd struct {
	belongs
	most  int
	stop  func()      // interrupts the cell; one that does not heed it is found again when it starts more
	gone  func() bool // there is nothing to be watched any more
	timer *time.Timer
	// judged says that it was looked for the last time; it belongs to Execute.
	judged bool

	mu   sync.Mutex
	over bool // guarded by mu
	met  bool // there were too many; guarded by mu
}

// begin begins to count. The caller calls end.
func (w *crowd) begin() *crowd {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(countEvery, w.tick)
	return w
}

// tick looks while the cell runs, and interrupts it.
func (w *crowd) tick() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over || w.gone() {
		return
	}
	if w.look(false) {
		w.stop()
	}
	w.timer.Reset(countEvery)
}

// end ends the watch, and waits until a look is over: what the next cell starts is not ended
// for this one.
func (w *crowd) end() {
	if w == nil {
		return
	}
	w.timer.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
}

// last looks once more at the end of a cell that took so long, and reports whether there were
// too many at any time. told says that the session has found so: it has ended what descends from
// it.
func (w *crowd) last(took time.Duration, told bool) bool {
	if w == nil || w.judged {
		return w != nil && w.met
	}
	w.judged = true
	w.end()
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.met || told: // until its interrupt came, it may have started more
		w.met = true
		w.endAll()
	case took >= time.Duration(w.most)*startTime:
		w.look(true)
	}
	return w.met
}

// look counts, and ends what was started where that is too many. The last one misses nothing that
// was started before. w.mu is held.
func (w *crowd) look(last bool) bool {
	pids, grouped := w.members()
	if !grouped {
		pids = w.related(false)
	}
	n := w.count(pids)
	if last && !grouped && n <= w.most && theCensus.newer() > w.most-n {
		n = w.count(w.related(true))
	}
	if n <= w.most {
		return false
	}
	w.met = true
	w.endAll()
	return true
}

// count returns how many of these live and are not the session's own; of few, it may be more.
func (w *crowd) count(pids []int) int {
	if len(pids) <= w.most {
		return len(pids)
	}
	return len(w.others(pids))
}

// endAll ends what the session has started.
func (w *crowd) endAll() {
	ctx, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	if _, grouped := w.members(); grouped {
		w.group.EndSome(ctx, w.others)
		return
	}
	for quiet := 0; quiet < quietLooks && ctx.Err() == nil; quiet++ {
		if found := w.others(w.related(true)); len(found) > 0 {
			quiet = -1
			process.KillAll(ctx, found)
		}
	}
}

// belongs is how it is told what belongs to a session.
type belongs struct {
	pid   int           // of the session
	group *cgroup.Group // its own; nil: it has none
}

// members returns what is in the control group of the session. False: that does not say what
// belongs to it, since it has none, or was moved to that of its workspace.
func (b belongs) members() ([]int, bool) {
	if b.group == nil {
		return nil, false
	}
	pids, err := b.group.Members()
	return pids, err == nil && slices.Contains(pids, b.pid)
}

// related returns what has the mark of the session and its part of that. With fresh the machine
// is looked at for this answer; else one that was just seen will do.
func (b belongs) related(fresh bool) []int {
	of, err := process.BelongingOf(b.pid)
	if err != nil || of.Part == 0 {
		return nil // nothing tells them from others
	}
	return theCensus.of(of, fresh)
}

// others returns those that live, without the process of the session and what that runs in.
func (b belongs) others(pids []int) []process.Identity {
	living, err := process.TallyOf(pids)
	if err != nil {
		return nil // this process has no more room: the next look will tell
	}
	parents := make(map[int]int, len(living))
	for _, m := range living {
		parents[m.PID] = m.Parent
	}
	own := map[int]bool{}
	for pid := b.pid; pid > 0 && !own[pid]; pid = parents[pid] {
		own[pid] = true
	}
	ids := make([]process.Identity, 0, len(living))
	for _, m := range living {
		if !own[m.PID] {
			ids = append(ids, m.Identity)
		}
	}
	return ids
}

// setApart gives the session a part of its own of what has its mark; one of an earlier host, which
// is not new, may have one that what it has started has, too. A workspace gives it another one
// later. One of another user may not be told: of that, what descends from it counts alone, which
// the session sees to.
func (b belongs) setApart(new bool) {
	const least = 1 << 32 // those of workspaces are numbers from 1 on
	if of, err := process.BelongingOf(b.pid); err == nil && of.Mark > 2*least && (new || of.Part == 0) {
		_ = process.SetPart(b.pid, process.Part(least+rand.Uint64N(uint64(of.Mark)-2*least)))
	}
}

// census is what the processes of the machine belong to, for all sessions that ask.
type census struct {
	mu    sync.Mutex
	at    time.Time                   // when it was taken; guarded by mu
	took  time.Duration               // what that took; guarded by mu
	last  int                         // the process that had begun last; 0: unknown; guarded by mu
	found map[process.Belonging][]int // guarded by mu
}

// theCensus is one for all servers of this process: they look at the same machine.
var theCensus census

// of returns the processes with a mark and a part; with fresh, as it is now: a census that begins
// meanwhile serves all who wait for one.
func (c *census) of(b process.Belonging, fresh bool) []int {
	asked := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	begin := time.Now()
	if begun := c.at.Add(-c.took); fresh && !begun.After(asked) || begin.Sub(c.at) >= censusPart*c.took {
		last := process.LastStarted() // before: what begins meanwhile may be missed
		found, err := process.Belongings()
		if err != nil {
			return nil // this process has no more room: the next look will tell
		}
		c.found, c.last, c.at = found, last, time.Now()
		c.took = c.at.Sub(begin)
	}
	return c.found[b]
}

// newer returns how many processes may have begun since the last census, by the numbers that the
// machine gives them one after the other.
func (c *census) newer() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := process.LastStarted(); now > 0 && c.last > 0 && now >= c.last {
		return now - c.last
	}
	return math.MaxInt // they have begun again from the lowest, or are not told
}
