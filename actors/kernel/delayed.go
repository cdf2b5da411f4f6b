package kernel

import (
	"sync"
	"time"

	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/supervisor"
)

// A call is looked at when it takes long: a look at its process costs what a short call
// does. What it has lost is told when it is both of this.
const (
	delayLook   = 250 * time.Millisecond
	delayLeast  = time.Second
	delayShare  = 10 // part of the whole
	delayNotice = "the machine was busy: the code took "
)

// delayed sees how long a call had no processor. Begin and end are called by one
// goroutine.
type delayed struct {
	timer  *time.Timer
	stalls supervisor.Stalls
	meter  *opportunity.Meter // set before look is done
	look   sync.WaitGroup
}

// watchDelay begins; the notice must be asked for. It is paid for by every call, so that
// it allocates nothing but a timer.
func (r *run) watchDelay(stalls supervisor.Stalls) {
	r.delayed.stalls = stalls
	r.delayed.look.Add(1)
	r.delayed.timer = time.AfterFunc(delayLook, r.lookAtDelay)
}

// lookAtDelay is the goroutine of the timer; the notice waits for it.
func (r *run) lookAtDelay() {
	defer r.delayed.look.Done()
	r.delayed.meter = opportunity.Begin(subject(r.interp), r.delayed.stalls)
}

// notice tells of a call that the machine has delayed, "" of any other, and ends the
// look.
func (d *delayed) notice() string {
	if d.timer.Stop() {
		return ""
	}
	d.look.Wait()
	m := d.meter.Measure()
	m.Disk = 0 // it is the code that reads and writes
	if lost := m.Waited + m.Stalled; lost < delayLeast || lost < m.Wall/delayShare {
		return ""
	}
	return delayNotice + m.String()
}
