package jupyter

import (
	"sync"
	"time"

	"github.com/coppice-run/coppice/internal/opportunity"
)

// workPart is the part of its opportunity that a kernel which does not answer has to
// compute for, so that it counts as working. Threads that pass messages on use a
// hundredth, though native code holds the interpreter for good.
const workPart = 10

// lookAfter is how long a kernel is silent before its process is looked at, and lookEvery
// how often from then on: a look costs what a ping does. Of a thread that wants a
// processor at the last look it is not known for how long it did, only that it slept at
// the look before.
const (
	lookAfter = 100 * time.Millisecond
	lookEvery = 250 * time.Millisecond
)

// working sees whether a process computes while it is waited for. One goroutine uses it.
type working struct {
	of    opportunity.Subject
	mu    sync.Mutex
	timer *time.Timer
	meter *opportunity.Meter // nil until it is looked at
	over  bool
}

// watchWork begins to look at who is silent for long. Its computes must be
// called.
func watchWork(of opportunity.Subject) *working {
	w := &working{of: of}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(lookAfter, w.look)
	return w
}

func (w *working) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	if w.meter == nil {
		w.meter = opportunity.Begin(w.of, nil)
	} else {
		w.meter.Measure()
	}
	w.timer.Reset(lookEvery)
}

// computes says whether it did, as far as it was given a processor, and ends the look. One
// that wanted a processor and was given none at all has not failed to. False where that is
// not known.
func (w *working) computes() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.timer.Stop()
	if w.meter == nil {
		return false
	}
	m := w.meter.Measure()
	return m.Known != opportunity.Nothing && !m.Stopped && m.Ran >= (m.Wall-m.Waited)/workPart && (m.Ran > 0 || m.Waited >= m.Wall/2)
}
