package opportunity

import (
	"time"

	"github.com/coppice-run/coppice/internal/process"
)

// ledger adds up what the threads of the other side waited, look by look. It is a
// value without a clock.
//
// The system adds a wait for a processor to a thread's counter when that gets one;
// until then the wait is known from the thread's state alone, and only that it began
// after the thread had last a turn or was last seen asleep. That is pending: the part
// of the time since then which the thread neither ran nor is known to have waited.
//
//	asleep ──wants──▶ pending grows ──gets a turn──▶ counted, nothing pending
//
// Of several threads the one counts that waited most in each span: what one of them
// must do, the answer waits for. What they waited at the same time is one wait, and
// so less than what all of them waited, one after the other.
type ledger struct {
	at      time.Time // of the last look; zero: never
	threads map[int]past

	waited, disk, pending, ran time.Duration
	counted                    bool
}

// past is a thread at the last look.
type past struct {
	process.Thread
	pending time.Duration
}

// add takes the threads that are there now.
func (l *ledger) add(at time.Time, threads []process.Thread) {
	first := l.at.IsZero()
	span := max(0, at.Sub(l.at))
	if first {
		span = 0
	}
	next := make(map[int]past, len(threads))
	var waited, disk time.Duration
	l.pending, l.counted = 0, true
	for _, t := range threads {
		l.counted = l.counted && t.Counted
		was, there := l.threads[t.ID]
		if !there || t.Ran < was.Ran || t.Turns < was.Turns { // it is new
			was = past{Thread: process.Thread{ID: t.ID, Counted: t.Counted}}
			if first {
				was.Thread = t
			}
		}
		w := wait(was, t, span)
		l.ran += t.Ran - was.Ran
		next[t.ID] = past{Thread: t, pending: w.pending}
		l.pending = max(l.pending, w.pending)
		if w.processor+w.disk > waited+disk {
			waited, disk = w.processor, w.disk
		}
	}
	l.waited += waited
	l.disk += disk
	l.at, l.threads = at, next
}

// waits is what a thread waited in a span, and what it may have besides.
type waits struct{ processor, disk, pending time.Duration }

// wait compares a thread with what it was a span before.
func wait(was past, is process.Thread, span time.Duration) waits {
	ran := max(0, is.Ran-was.Ran)
	idle := max(0, span-ran)
	wanted := was.State == process.Wanting || was.State == process.OnDisk
	wants := is.State == process.Wanting || is.State == process.OnDisk
	if was.State == process.OnDisk && is.State == process.OnDisk && is.Turns == was.Turns && ran == 0 {
		return waits{disk: span, pending: was.pending}
	}
	if !is.Counted {
		switch {
		case wanted && wants:
			return waits{processor: idle}
		case wants:
			return waits{pending: idle}
		default:
			return waits{}
		}
	}
	// No wait is longer than the span and what was pending before it.
	w := waits{processor: between(0, is.Waited-was.Waited, span+was.pending)}
	switch {
	case !wants:
	case is.Turns == was.Turns: // it still waits, or still runs
		w.pending = max(0, was.pending+idle-w.processor)
	default: // the last wait began in this span; the earlier one is counted
		w.pending = max(0, idle-max(0, w.processor-was.pending))
	}
	return w
}
