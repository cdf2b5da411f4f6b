package kernel

import (
	"time"

	"github.com/coppice-run/coppice/internal/opportunity"
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
	timer *time.Timer
	began chan *opportunity.Meter
}

// watchDelay begins with what meter begins. Its notice must be called.
func watchDelay(meter func() *opportunity.Meter) *delayed {
	d := &delayed{began: make(chan *opportunity.Meter, 1)}
	d.timer = time.AfterFunc(delayLook, func() { d.began <- meter() })
	return d
}

// notice tells of a call that the machine has delayed, "" of any other, and ends the
// look.
func (d *delayed) notice() string {
	if d.timer.Stop() {
		return ""
	}
	m := (<-d.began).Measure()
	m.Disk = 0 // it is the code that reads and writes
	if lost := m.Waited + m.Stalled; lost < delayLeast || lost < m.Wall/delayShare {
		return ""
	}
	return delayNotice + m.String()
}
