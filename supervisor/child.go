package supervisor

import (
	"slices"
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

// child is a key of a shell: its place in the tree, its work, and its present
// incarnation. Only the shell's goroutine reads and writes it. Instants are
// offsets from System.began, plus one, so that zero means never.
type child struct {
	spec  *Spec // never changed; specify replaces it
	slot  *slot
	order int

	cell  *cell // nil between two incarnations
	epoch uint64
	state messages.ChildState
	told  messages.ChildState // the state that was last announced

	since, startedAt, upAt, lastDone, busySince instant

	queue  fifo
	inHand any     // the work in hand, as it was sent; nil without
	handT  *ticket // its ticket
	endSeq uint64  // work up to this number was ended with the key

	done, doneEpoch         uint64
	restarts, totalRestarts int32
	barren                  int32 // incarnations in a row that ended without having begun work, while work waited
	index                   int32 // in Shell.due, -1 when not
	failures                []instant

	lastExit *Exit         // why the last incarnation ended
	failure  *Exit         // what this incarnation failed with, if it is suspended
	final    *Exit         // why the key is failed for good, or will be
	after    time.Duration // with sequelAgain: the delay before the next start
	due      instant       // the deadline of the present state, 0: none
	turn     uint64        // orders those in Shell.line

	elder, younger *child // neighbours in Shell.idle, Shell.failures or Shell.line
	before, behind *child // neighbours in the order of Shell.first

	static    bool
	served    bool      // work was dispatched to this incarnation
	ever      bool      // an incarnation before this one had begun work
	bySelf    bool      // nobody had asked the last incarnation to end
	next      sequel    // what follows the end of this incarnation
	reset     bool      // with sequelAgain: it was asked for, and clears the past
	group     groupRole // its part in the operation Shell.batch
	pinned    bool
	astray    bool // the last incarnation was abandoned
	revive    bool // a start was asked for, whether work waits or not
	specified bool // the Door has said how to make the next incarnation
	queued    bool // in Shell.kicks
	waiting   bool // in Shell.line
}

// instant is a time since System.began, plus one; 0 is never.
type instant int64

// fifo is the work that waits for a child. Without any it has no memory.
type fifo struct{ l *list }

type list struct {
	w    []Work
	head int
}

func (f *fifo) len() int {
	if f.l == nil {
		return 0
	}
	return len(f.l.w) - f.l.head
}

func (f *fifo) push(w Work) {
	if f.l == nil {
		f.l = &list{}
	}
	if l := f.l; l.head > 32 && l.head > len(l.w)/2 {
		// A queue that is never empty must not keep what has left it.
		l.w, l.head = slices.Delete(l.w, 0, l.head), 0
	}
	f.l.w = append(f.l.w, w)
}

// pushFront puts back what was taken out too early.
func (f *fifo) pushFront(w Work) {
	switch {
	case f.l == nil:
		f.push(w)
	case f.l.head > 0:
		f.l.head--
		f.l.w[f.l.head] = w
	default:
		f.l.w = slices.Insert(f.l.w, 0, w)
	}
}

func (f *fifo) pop() Work {
	l := f.l
	w := l.w[l.head]
	l.w[l.head] = Work{}
	l.head++
	if l.head == len(l.w) {
		f.l = nil
	}
	return w
}

func (f *fifo) peek() Work { return f.l.w[f.l.head] }

// all returns the work, oldest first.
func (f *fifo) all() []Work {
	if f.l == nil {
		return nil
	}
	return slices.Clone(f.l.w[f.l.head:])
}

// remove takes w out without disturbing the order of the rest.
func (f *fifo) remove(w Work) bool {
	if f.l == nil {
		return false
	}
	for i := f.l.head; i < len(f.l.w); i++ {
		if f.l.w[i].same(w) {
			f.l.w = slices.Delete(f.l.w, i, i+1)
			if f.len() == 0 {
				f.l = nil
			}
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

// work is the work in hand; the zero Work without.
func (ch *child) work() Work {
	w, _ := ch.inHand.(Work)
	return w
}

// up reports whether the present incarnation became ready.
func (ch *child) up() bool { return ch.upAt != 0 }

func (ch *child) isShell() bool { return ch.cell != nil && ch.cell.shell.Load() != nil }

// view describes the child.
func (ch *child) view(s *Shell) strategy.ChildView {
	v := strategy.ChildView{
		Key: ch.spec.Key, Kind: ch.spec.Kind, Owner: ch.spec.Owner,
		Epoch: ch.epoch, State: ch.state,
		Since: s.sys.at(ch.since), StartedAt: s.sys.at(ch.startedAt), UpAt: s.sys.at(ch.upAt),
		LastDone: s.sys.at(ch.lastDone), BusySince: s.sys.at(ch.busySince),
		Turn: ch.turn, Queue: ch.queue.len(), Done: ch.done, DoneThisEpoch: ch.doneEpoch,
		Restarts: int(ch.restarts), TotalRestarts: int(ch.totalRestarts),
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
