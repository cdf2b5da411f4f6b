package opportunity

import (
	"fmt"
	"strings"
	"time"
)

// Known is how much the system tells of the other side. A greater value is more.
type Known int

// What may be known.
const (
	// Nothing: the process is of another machine, or this system does not tell.
	// Opportunity is then the time in which we listened.
	Nothing Known = iota
	// Usage: its states and processor time. Waiting is judged from whether it wants
	// a processor whenever it is looked at.
	Usage
	// Waits: the system counts how long each thread waits.
	Waits
)

// Measure is what a [Meter] has seen since it began. All durations are parts of Wall
// but Slept and Throttled.
type Measure struct {
	// Wall is the time since the meter began, by the monotonic clock. On Linux and
	// macOS that clock stands still while the machine sleeps.
	Wall time.Duration
	// Opportunity is how long the other side could run while we could listen. What is
	// not certain is not in it: a thread that wants a processor at this moment may
	// have waited since it was seen asleep. It never falls.
	Opportunity time.Duration
	// Most is what Opportunity is if that thread has not waited.
	Most time.Duration
	// Listened is Wall without the time in which this process stood still itself, and
	// without a moment after each such time, for what came meanwhile to be read.
	Listened time.Duration
	// Waited is how long the other side waited for a processor, at most; Disk how
	// long for a disk.
	Waited, Disk time.Duration
	// Stalled is how long this process stood still, or ran too late.
	Stalled time.Duration
	// Throttled is how long the control group of the other side was held back by a
	// limit of processors, added up over processors. It is a part of Waited, for people.
	Throttled time.Duration
	// Slept is how long the machine slept.
	Slept time.Duration
	// Ran is the processor time that the other side has used.
	Ran time.Duration
	// Stopped says that the other side is stopped by a signal or a debugger now.
	Stopped bool
	Known   Known

	owed time.Duration // of what is not counted after we stood still
}

// String tells the time and what became of it, as a clause for people: "30 s, of
// which it waited 22 s for a processor".
func (m Measure) String() string {
	var parts []string
	add := func(d time.Duration, format string) {
		if d >= worthTelling && d*tellingShare >= m.Wall {
			parts = append(parts, fmt.Sprintf(format, seconds(d)))
		}
	}
	add(m.Waited, "it waited %s for a processor")
	add(m.Disk, "it waited %s for a disk")
	add(m.Stalled, "this program stood still for %s")
	text := seconds(m.Wall)
	if len(parts) > 0 {
		text += ", of which " + strings.Join(parts, " and ")
	}
	if m.Stopped {
		text += "; it is stopped by a signal"
	}
	if m.Slept >= time.Second {
		text += "; besides, the machine slept for " + seconds(m.Slept)
	}
	return text
}

// What is less than this, or than this part of the whole, is of no interest.
const (
	worthTelling = 100 * time.Millisecond
	tellingShare = 20
)

// seconds writes a duration as "22 s", "1.5 s" or "120 ms".
func seconds(d time.Duration) string {
	const exact = 10 * time.Second
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < exact && d%time.Second >= worthTelling:
		return fmt.Sprintf("%.1f s", d.Truncate(worthTelling).Seconds())
	default:
		return fmt.Sprintf("%d s", int64(d/time.Second))
	}
}

// After is the part of m that came after before, an earlier measure of the same meter.
func (m Measure) After(before Measure) Measure {
	m.Wall -= before.Wall
	m.Opportunity -= before.Opportunity
	m.Most = max(m.Opportunity, m.Most-before.Opportunity)
	m.Listened -= before.Listened
	m.Waited = max(0, m.Waited-before.Waited)
	m.Disk -= before.Disk
	m.Stalled -= before.Stalled
	m.Throttled -= before.Throttled
	m.Slept -= before.Slept
	m.Ran -= before.Ran
	return m
}
