package supervisor

import (
	"time"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// sequel is what follows the end of an incarnation.
type sequel uint8

const (
	// sequelOpen: nothing is planned; the strategy decides when it ends.
	sequelOpen sequel = iota
	// sequelForget: work that waits gets a new child, otherwise the key is
	// forgotten.
	sequelForget
	// sequelRefuse: as forget, but work that waits is refused: the start failed.
	sequelRefuse
	// sequelFail: the key stays failed.
	sequelFail
	// sequelAgain: another incarnation starts, in the same place.
	sequelAgain
)

// groupRole is a static child's part in the operation that is under way.
type groupRole uint8

const (
	groupNone  groupRole = iota
	groupStop            // its incarnation is to end, in reverse order
	groupStart           // it is to be started, in order
)

// child is a key of a supervisor: its place in the tree, its work, and its
// present incarnation. Only the supervisor's goroutine reads and writes it.
type child struct {
	spec  *Spec // never changed; specify replaces it
	slot  *slot
	order int

	live  *incarnation // nil between two incarnations
	epoch uint64
	state messages.ChildState
	told  messages.ChildState // the state that was last announced

	since, startedAt, upAt, lastDone, busySince instant

	queue  fifo
	inHand any     // the work in hand, as it was sent; nil without
	handT  *ticket // its ticket

	done, doneEpoch         uint64
	restarts, totalRestarts int32
	barren                  int32 // incarnations in a row that ended without having begun work, while work waited
	index                   int32 // in Supervisor.due, -1 when not
	failures                []instant

	lastExit *Exit // why the last incarnation ended
	// asked is what the incarnation was asked to end with, nil while it was not. A reset or an
	// end counts more than that it had just hibernated: what it has left is not wanted any more.
	asked   *Exit
	failure *Exit         // what this incarnation failed with, if it is suspended
	final   *Exit         // why the key is failed for good, or will be
	after   time.Duration // with sequelAgain: the delay before the next start
	due     instant       // the deadline of the present state, 0: none
	dueFrom instant       // when that was set
	turn    uint64        // orders those in Supervisor.waitlist

	elder, younger *child // neighbours in Supervisor.idle, Supervisor.failures or Supervisor.waitlist
	before, behind *child // neighbours in the order of Supervisor.first
	nextHeard      *child // in a list of Supervisor.heard

	static    bool
	served    bool      // work was dispatched to this incarnation
	ever      bool      // an incarnation before this one had begun work
	bySelf    bool      // the last incarnation ended without being asked to
	next      sequel    // what follows the end of this incarnation
	reset     bool      // with sequelAgain: it was asked for, and clears the past
	anew      bool      // this incarnation follows such an end: nothing is brought back to it
	group     groupRole // its part in the operation Supervisor.batch
	pinned    bool
	astray    bool // the last incarnation was abandoned
	revive    bool // a start was asked for, whether work waits or not
	specified bool // the Handler has said how to make the next incarnation
	queued    bool // in Supervisor.kicks
	waiting   bool // in Supervisor.waitlist
	removed   bool // its entry was taken out
}

// work is the work in hand; the zero Work without.
func (ch *child) work() Work {
	w, _ := ch.inHand.(Work)
	return w
}

// up reports whether the present incarnation became ready.
func (ch *child) up() bool { return ch.upAt != 0 }

func (ch *child) supervises() bool { return ch.live != nil && ch.live.above.Load() != nil }

// view describes the child.
func (ch *child) view(clock clock) strategy.ChildView {
	v := strategy.ChildView{
		Key: ch.spec.Key, Kind: ch.spec.Kind, Owner: ch.spec.Owner,
		Epoch: ch.epoch, State: ch.state,
		Since: clock.at(ch.since), StartedAt: clock.at(ch.startedAt), UpAt: clock.at(ch.upAt),
		LastDone: clock.at(ch.lastDone), BusySince: clock.at(ch.busySince),
		Turn: ch.turn, Queue: ch.queue.len(), Done: ch.done, DoneThisEpoch: ch.doneEpoch,
		Restarts: int(ch.restarts), TotalRestarts: int(ch.totalRestarts),
		Pinned: ch.pinned, Static: ch.static, LastExit: ch.lastExit, Served: ch.served,
		RestartType: ch.spec.Restart, Significant: ch.spec.Significant, Order: ch.order,
	}
	if c := ch.live; c != nil {
		v.LastBeat = clock.at(instant(c.beat.Load()))
		v.HandlingSince = clock.at(instant(c.handling.Load()))
		v.WaitingForCredit = c.held.Load()
		v.Waited, v.WaitedAfter = c.waited()
		if f := c.facts.Load(); f != nil {
			v.Detail, v.PID, v.RSS = f.Detail, f.PID, f.RSS
		}
	}
	return v
}

// heard is when the child was heard of last: the instant of its last beat, or the one at which
// the call began that it is in, whichever is earlier; now when nothing is expected of it. It is
// silent when that is not after the limit.
func (ch *child) heard(now, limit instant) (at instant, silent bool) {
	if ch.live == nil || ch.state != messages.ChildIdle && ch.state != messages.ChildBusy {
		return now, false
	}
	at = now
	for _, one := range []int64{ch.live.handling.Load(), ch.live.beat.Load()} {
		if one != 0 {
			at = min(at, instant(one))
		}
	}
	return at, at <= limit
}

// inLast reports whether the work that was begun last is the child's last.
func (ch *child) inLast(begun uint64) bool { w := ch.work(); return w.Last && w.seq == begun }

// afterFailure is what follows a Stop or Abandon of a failed child.
func (ch *child) afterFailure(d *strategy.Directive) sequel {
	switch {
	case d.Exit.Kind == messages.ExitExhausted:
		ch.final = &d.Exit
		return sequelFail
	case !ch.up():
		return sequelRefuse
	default:
		return sequelForget
	}
}

// tallyKey is what children are counted by.
type tallyKey struct{ kind, owner string }

func groupOf(ch *child) tallyKey { return tallyKey{ch.spec.Kind, ch.spec.Owner} }
