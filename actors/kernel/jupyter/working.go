package jupyter

import (
	"time"

	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/process"
)

// workPart is the part of its opportunity that a kernel which does not answer has to
// compute for, so that it counts as working. Threads that pass messages on use a
// hundredth, though native code holds the interpreter for good.
const workPart = 10

// lookAfter is how long a kernel is silent before its process is looked at: a look
// costs what a ping does.
const lookAfter = 100 * time.Millisecond

// working sees whether a process computes while it is waited for. One goroutine uses it.
type working struct {
	timer *time.Timer
	began chan *opportunity.Meter
}

// watchWork begins to look at a process that is silent for long. Its computes must be
// called.
func watchWork(id process.Identity) *working {
	w := &working{began: make(chan *opportunity.Meter, 1)}
	w.timer = time.AfterFunc(lookAfter, func() { w.began <- opportunity.Begin(opportunity.Processes(id), nil) })
	return w
}

// computes says whether it did, as far as it was given a processor, and ends the look.
// False where that is not known.
func (w *working) computes() bool {
	if w.timer.Stop() {
		return false
	}
	m := (<-w.began).Measure()
	return m.Known != opportunity.Nothing && !m.Stopped && m.Ran > 0 && m.Ran >= (m.Wall-m.Waited)/workPart
}
