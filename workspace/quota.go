package workspace

import (
	"context"
	"slices"
	"time"

	"github.com/coppice-run/coppice/messages"
)

const (
	// diskEvery is how often the folder of a workspace is measured at most, while something goes
	// on, besides when it begins, and diskMost how long at most a big one is not measured besides.
	diskEvery = 100 * time.Millisecond
	diskMost  = 10 * time.Second
)

// disk is what a look has seen of the folder of a workspace.
type disk struct {
	bytes int64
	turn  uint64 // in which turn of the workspace that was
	looks uint64 // how many there were
}

// quota stops what goes on in a workspace whose folder holds more than it may, and more
// than it did since that goes on: what makes room goes on, and so does what finds a folder
// that is full already, since whoever has filled it may be over.
func (a *watch) quota(ctx context.Context, kernels map[int]root, running map[int]*Process) {
	w, most := a.w, a.w.o.Quota
	w.mu.Lock()
	folder, turn, before := w.files, w.turn, w.disk
	w.mu.Unlock()
	first, since := before.looks == 0 || before.turn != turn, time.Since(a.measured)
	if most <= 0 || folder == nil || since < 0 || since < diskEvery && !first {
		return
	}
	begin := time.Now()
	bytes, err := folder.Usage(ctx)
	a.measured = time.Now()
	pause := min(lookShare*a.measured.Sub(begin), diskMost) // a big folder is measured less often
	if err != nil {
		a.measured = a.measured.Add(pause)
		return
	}
	w.mu.Lock()
	w.disk = disk{bytes: bytes, turn: turn, looks: before.looks + 1}
	inside := slices.Clone(w.inside)
	w.mu.Unlock()
	if bytes <= most || !first {
		a.measured = a.measured.Add(pause) // else what goes on is to be told from what was, also where it is short
	}
	if first || bytes <= most || bytes <= before.bytes {
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
