package workspace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/messages"
)

// sweepTime bounds the end of what the processes of a workspace have left behind.
const sweepTime = 5 * time.Second

// owner is what owns the processes of the workspace: one that ends with it, where it has
// walls, else that of the host.
func (w *Workspace) owner() *process.Owner {
	if w.place.Owner != nil {
		return w.place.Owner
	}
	return w.set.o.Owner
}

// limited reports whether the workspace has to be looked at.
func (w *Workspace) limited() bool { return w.o.Total.watched() || w.o.Quota > 0 }

// Began marks a kernel of the workspace, so that what its cells start is known to
// belong to it, and bounds it as the workspace is bounded.
func (w *Workspace) Began(i kernel.Info, stop func(messages.ResourceLimitExceeded)) {
	if i.PID <= 0 {
		w.beganInside(stop)
		return
	}
	// One of another user may not be marked: it stands below an owner of the workspace,
	// and is known by its number.
	_ = process.SetMark(i.PID, w.mark)
	w.mu.Lock()
	part := w.newPart()
	w.mu.Unlock()
	if process.SetPart(i.PID, part) != nil { // it has begun with one, if it has a mark
		part, _ = process.PartOf(i.PID)
	}
	if w.o.Quota > 0 {
		_ = process.LimitFileSize(i.PID, uint64(w.o.Quota)) // looks find what this does not stop
	}
	if w.group != nil {
		if err := w.group.Take(i.PID); err != nil {
			w.set.o.Logger.Warn("a kernel is not in the control group of its workspace", "workspace", w.name, "err", err)
		}
	}
	if w.limited() {
		id, _ := process.Identify(i.PID) // one that has ended meanwhile is no root
		w.mu.Lock()
		w.kernels[i.PID] = root{id: id, part: part, stop: stop}
		w.mu.Unlock()
	}
}

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

// newPart returns what the next kernel or process, and all that it starts, is known by
// among what has the mark of the workspace. w.mu is held.
func (w *Workspace) newPart() process.Part {
	w.partNext++
	return w.partNext
}

// roots returns the kernels and the processes of the workspace, by their numbers.
func (w *Workspace) roots() (map[int]root, map[int]*Process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	running := map[int]*Process{}
	for _, p := range w.procs {
		if _, ended := p.Exit(); !ended {
			running[p.PID()] = p
		}
	}
	kernels := make(map[int]root, len(w.kernels))
	for pid, k := range w.kernels {
		if process.Alive(k.id) { // its number may be another's by now
			kernels[pid] = k
		}
	}
	return kernels, running
}

// goneFor is how long a kernel that has ended is remembered: what it has left behind may
// still have to be ended.
const goneFor = time.Minute

// forgetKernels drops the kernels that have ended.
func (w *Workspace) forgetKernels() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(w.kernels, func(pid int, k root) bool {
		if !process.Ended(k.id) {
			return false
		}
		if k.gone.IsZero() {
			k.gone = now
			w.kernels[pid] = k
		}
		return now.Sub(k.gone) >= goneFor
	})
}

// killed returns what tells why a process was killed that begins at a moment: the system may
// have done it, for a limit.
func (w *Workspace) killed(since time.Time) func(pid int) string {
	return func(pid int) string {
		if met := w.Ended(pid, since); met != nil {
			return met.Error()
		}
		return ""
	}
}

// groupFiles opens the control group for a process that is to begin in it. nil: there is
// none. The caller closes them.
func (w *Workspace) groupFiles() ([]*os.File, error) {
	if w.group == nil {
		return nil, nil
	}
	return w.group.Open()
}

// sweep ends what the kernels and the processes of the workspace have started and left
// behind, when they have ended themselves: it has left their groups and their sessions.
func (w *Workspace) sweep() error {
	if w.mark == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), sweepTime)
	defer cancel()
	return process.EndMarked(ctx, w.mark)
}

// over says that a workspace has passed a limit: used so much, where it may have most.
func (w *Workspace) over(limit messages.Limit, used, most string, done string) messages.ResourceLimitExceeded {
	return messages.ResourceLimitExceeded{Limit: limit, Detail: fmt.Sprintf("the workspace %s had %s together, and may have %s: %s", w.name, used, most, done)}
}

// root is a kernel of the workspace, from which a part of its processes descends.
type root struct {
	id   process.Identity
	part process.Part // by which what it has started is known
	gone time.Time    // when it was seen to have ended; zero: it was not
	stop func(messages.ResourceLimitExceeded)
}

// ending is what was ended for a limit.
type ending struct {
	at time.Time
	// until is when it was over, zero where that was at once. guarded by the workspace's mu
	until time.Time
	root  int // the kernel or process that it descended from; 0: all are told; [nobody]: none is
	met   messages.ResourceLimitExceeded
	// pids are what was ended, of what may be a kernel; all says that everything was.
	pids []int
	all  bool
	// failed says that only those have met it whose code has raised something.
	failed bool
}

// keptEndings is how many are remembered, for those who ask what they have met.
const keptEndings = 64

// met notes an end for a limit, before what has met it is ended, so that no one who sees it
// end finds nothing here.
func (w *Workspace) met(e *ending) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e.at = time.Now()
	w.endings = append(w.endings, e)
	if len(w.endings) > keptEndings {
		w.endings = w.endings[1:]
	}
	w.used.Ends++
	w.used.Last = e.met.Error()
}

// tooLong is how Python says that a file may not become longer (EFBIG).
const tooLong = "[Errno 27]"

// Met returns the limit of the workspace for which the kernel with this process id, or something
// that it has started, was ended since a moment, or that raised is about; nil: none.
func (w *Workspace) Met(pid int, since time.Time, raised *messages.ErrorDetails) *messages.ResourceLimitExceeded {
	if w.o.Quota > 0 && raised != nil && raised.Name == "OSError" && strings.Contains(raised.Message, tooLong) {
		return &messages.ResourceLimitExceeded{Limit: messages.LimitDisk, Detail: fmt.Sprintf("the workspace %s may have %s of files together, and a file would have become longer than that: it was not written further", w.name, bytesOf(w.o.Quota))}
	}
	if w.group != nil {
		w.lookAtGroup()
		// The system may refuse what comes before the next look, and the code be over by then.
		if most := w.o.Total.Processes; raised != nil && most > 0 && !w.place.Inside && len(w.inGroup()) > most {
			w.tooMany(context.Background(), nil, pid)
		}
	}
	met := w.metSince(pid, since, raised != nil)
	if met != nil && met.Limit == messages.LimitProcesses {
		w.parting.Lock() // until it is over: what comes next is not ended with it
		defer w.parting.Unlock()
	}
	if met == nil {
		met = w.overQuota(context.Background(), pid)
	}
	return met
}

func (w *Workspace) metSince(pid int, since time.Time, failed bool) *messages.ResourceLimitExceeded {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range slices.Backward(w.endings) {
		if (e.root == pid || e.root == 0) && e.since(since) && (failed || !e.failed) {
			return &e.met
		}
	}
	return nil
}

// since reports whether it was, or went on, since a moment.
func (e *ending) since(moment time.Time) bool {
	return !e.at.Before(moment) || !e.until.Before(moment)
}

// Ended returns the limit of the workspace for which the kernel with this process id was itself
// ended since a moment; nil: it was not.
func (w *Workspace) Ended(pid int, since time.Time) *messages.ResourceLimitExceeded {
	if w.group != nil {
		w.lookAtGroup()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range slices.Backward(w.endings) {
		if (e.all || slices.Contains(e.pids, pid)) && e.since(since) {
			return &e.met
		}
	}
	return nil
}

var _ kernel.Guard = (*Workspace)(nil)

// overQuota looks at the folder when a cell of the kernel with this process id has ended, and
// returns what it has met when the folder holds more than it may, and more than at the end of the
// cell before: one that is short is over before a look. It was not stopped, and may have ended
// well. A folder that takes long to measure is not measured each time.
func (w *Workspace) overQuota(ctx context.Context, pid int) *messages.ResourceLimitExceeded {
	w.mu.Lock()
	folder, turn, seen := w.files, w.turn, w.disk
	w.mu.Unlock()
	if w.o.Quota <= 0 || folder == nil || seen.dear() {
		return nil
	}
	begin := time.Now()
	bytes, err := folder.Usage(ctx)
	w.mu.Lock()
	if err != nil {
		w.disk.unseen(time.Since(begin))
		w.mu.Unlock()
		return nil
	}
	before := w.disk.told
	w.disk.measured(bytes, w.o.Quota, turn, time.Since(begin))
	w.disk.told = bytes
	w.mu.Unlock()
	if bytes <= w.o.Quota || bytes <= before {
		return nil
	}
	had, may := apart(bytes, w.o.Quota)
	met := w.over(messages.LimitDisk, had+" of files", may, "remove some")
	w.met(&ending{met: met, root: pid})
	return &met
}
