package supervisor

import (
	"time"

	"github.com/coppice-run/coppice/messages"
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

// Limits of the failure history.
const (
	maxFailures      = 32
	maxGroupFailures = 1024
)

// child is a key of a shell: its place in the tree, its work, and its present
// incarnation. Only the shell's goroutine reads and writes it. Instants are
// offsets from System.began, plus one, so that zero means never.
type child struct {
	spec   Spec
	slot   *slot
	static bool
	order  int

	cell  *cell // nil between two incarnations
	state messages.ChildState
	told  messages.ChildState // the state that was last announced
	epoch uint64

	since, startedAt, upAt, lastDone, busySince instant

	queue  fifo
	hand   Work // the work in hand; the zero Work without
	served bool // work was dispatched to this incarnation
	ever   bool // an incarnation before this one had begun work
	barren int  // incarnations in a row that ended without having begun work, while work waited

	done, doneEpoch         uint64
	restarts, totalRestarts int
	failures                []instant
	lastExit                *Exit

	next    sequel
	after   time.Duration // with sequelAgain: the delay before the next start
	reset   bool          // with sequelAgain: it was asked for, and clears the past
	failure *Exit         // what this incarnation failed with, if it is suspended
	final   *Exit         // why the key is failed for good, or will be
	group   groupRole     // part of the operation Shell.batch
	endSeq  uint64        // work up to this number was ended with the key
	pinned  bool

	revive    bool // a start was asked for, whether work waits or not
	specified bool // the Door has said how to make the next incarnation
	queued    bool // in Shell.kicks
	waiting   bool // in Shell.waiting
	turn      uint64
	index     int // in Shell.due, -1 when not
	due       instant

	before, behind *child // neighbours in the order of Shell.first
}

// instant is a time since System.began, plus one; 0 is never.
type instant int64

// fifo is the work that waits for a child.
type fifo struct {
	w    []Work
	head int
}

func (f *fifo) len() int { return len(f.w) - f.head }

func (f *fifo) push(w Work) { f.w = append(f.w, w) }

// pushFront puts back what was taken out too early.
func (f *fifo) pushFront(w Work) {
	if f.head > 0 {
		f.head--
		f.w[f.head] = w
		return
	}
	f.w = append(f.w, Work{})
	copy(f.w[1:], f.w)
	f.w[0] = w
}

func (f *fifo) pop() Work {
	w := f.w[f.head]
	f.w[f.head] = Work{}
	f.head++
	if f.head == len(f.w) {
		f.head, f.w = 0, f.w[:0]
		if cap(f.w) > 16 {
			f.w = nil // a burst does not keep its memory
		}
	}
	return w
}

func (f *fifo) peek() Work { return f.w[f.head] }

// remove takes w out without disturbing the order of the rest.
func (f *fifo) remove(w Work) bool {
	for i := f.head; i < len(f.w); i++ {
		if f.w[i].same(w) {
			copy(f.w[i:], f.w[i+1:])
			f.w[len(f.w)-1] = Work{}
			f.w = f.w[:len(f.w)-1]
			return true
		}
	}
	return false
}

// trim drops work at the front that was settled while it waited.
func (f *fifo) trim() {
	for f.len() > 0 && f.peek().Settled() {
		f.pop()
	}
}

// up reports whether the present incarnation became ready.
func (ch *child) up() bool { return ch.upAt != 0 }

func (ch *child) isShell() bool { return ch.cell != nil && ch.cell.shell.Load() != nil }

// view describes the child.
func (ch *child) view(s *Shell) ChildView {
	v := ChildView{
		Key: ch.spec.Key, Kind: ch.spec.Kind, Owner: ch.spec.Owner,
		Epoch: ch.epoch, State: ch.state,
		Since: s.sys.at(ch.since), StartedAt: s.sys.at(ch.startedAt), UpAt: s.sys.at(ch.upAt),
		LastDone: s.sys.at(ch.lastDone), BusySince: s.sys.at(ch.busySince),
		Turn: ch.turn, Queue: ch.queue.len(), Done: ch.done, DoneThisEpoch: ch.doneEpoch,
		Restarts: ch.restarts, TotalRestarts: ch.totalRestarts,
		Pinned: ch.pinned, Static: ch.static, LastExit: ch.lastExit, Served: ch.served,
		RestartType: ch.spec.Restart, Significant: ch.spec.Significant, Order: ch.order,
	}
	if c := ch.cell; c != nil {
		v.LastBeat = s.sys.at(instant(c.beat.Load()))
		v.HandlingSince = s.sys.at(instant(c.handling.Load()))
		v.WaitingForCredit = c.held.Load()
		if f := c.facts.Load(); f != nil {
			v.Detail, v.PID, v.RSS = f.Detail, f.PID, f.RSS
		}
	}
	return v
}
