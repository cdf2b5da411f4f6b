package kernel

import (
	"sync"
	"time"

	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// A call is looked at when it takes long: a look at its process costs what a short call
// does. What it has lost is told when it is both of this.
const (
	delayLook   = 250 * time.Millisecond
	delayLeast  = time.Second
	delayShare  = 10 // part of the whole
	delayNotice = messages.BusyNotice + "the code took "
)

// delayed sees how long a call had no processor. Begin and end are called by one
// goroutine.
type delayed struct {
	timer   *time.Timer
	interp  Interpreter
	stalls  supervisor.Stalls
	meter   *opportunity.Meter // set before looking is done
	looking sync.WaitGroup
}

// watch begins; the notice must be asked for. It is paid for by every call, so that it
// allocates nothing but a timer.
func (d *delayed) watch(i Interpreter, stalls supervisor.Stalls) {
	d.interp, d.stalls = i, stalls
	d.looking.Add(1)
	d.timer = time.AfterFunc(delayLook, d.look)
}

// look is the goroutine of the timer; the notice waits for it.
func (d *delayed) look() {
	defer d.looking.Done()
	d.meter = opportunity.Begin(subject(d.interp), d.stalls)
}

// notice tells of a call that the machine has delayed, "" of any other, and ends the
// look.
func (d *delayed) notice() string {
	if d.timer.Stop() {
		return ""
	}
	d.looking.Wait()
	m := d.meter.Measure()
	m.Disk = 0 // it is the code that reads and writes
	// The code has ended, and waits for nothing: a thread that wants a processor at this moment,
	// such as the one that has told so, may have slept until then.
	m.Waited = max(0, m.Waited-(m.Most-m.Opportunity))
	if lost := m.Waited + m.Stalled; lost < delayLeast || lost < m.Wall/delayShare {
		return ""
	}
	return delayNotice + m.String()
}

// subject is who is waited for, nil where that is not known.
func subject(interp Interpreter) opportunity.Subject {
	if w, ok := interp.(Witness); ok {
		return w.Subject()
	}
	return nil
}
