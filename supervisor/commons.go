package supervisor

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anthdm/hollywood/actor"

	"github.com/coppice-run/coppice/messages"
)

// commons is what all actors of a system share: the engine, the clock, the
// watchers, and the accounts that a shutdown reports from.
type commons struct {
	clock

	engine *actor.Engine
	events *events
	stalls Stalls

	serial       atomic.Int64 // makes actor ids unique
	incarnations atomic.Int64 // incarnations that are not over
	stopped      atomic.Int64 // incarnations that ended in order

	// inHand counts the work in the hands of children. quiet is rung when it
	// becomes zero while the system shuts down.
	inHand     atomic.Int64
	closing    atomic.Bool
	quiet      chan struct{}
	waited     atomic.Int64 // what children said that they waited for a processor
	postponed  atomic.Int64 // how often a child that was late was given more time
	unanswered atomic.Int64 // work that was not answered by a child since closing

	hurry latch         // the shutdown has no time left
	done  chan struct{} // closed at the end of the shutdown

	mu      sync.Mutex
	zombies map[survivor]*Exit  // abandoned, and their goroutine has not come back
	orphans map[survivor]orphan // below an abandoned supervisor, and asked to end
	less    chan struct{}       // rung when one of these ends
	bugs    []string
}

// survivor is an incarnation that has not ended although it should have.
type survivor interface {
	// leftover describes it in the report; exit is why it was given up.
	leftover(exit *Exit) messages.Leftover
}

// orphan is a survivor whose supervisor was abandoned.
type orphan struct {
	timer  *time.Timer // gives it up when its time is over
	giveUp func(*Exit)
}

func newCommons(engine *actor.Engine, log *slog.Logger) *commons {
	return &commons{
		clock: clock{time.Now()}, engine: engine, events: startEvents(log),
		quiet: make(chan struct{}, 1), less: make(chan struct{}, 1), done: make(chan struct{}),
		zombies: make(map[survivor]*Exit), orphans: make(map[survivor]orphan),
	}
}

func (s *commons) dispatched() { s.inHand.Add(1) }

func (s *commons) finished() {
	if s.inHand.Add(-1) == 0 && s.closing.Load() {
		select {
		case s.quiet <- struct{}{}:
		default:
		}
	}
}

// unserved counts work that a shutdown ended.
func (s *commons) unserved() {
	if s.closing.Load() {
		s.unanswered.Add(1)
	}
}

// bug notes what must never happen and did.
func (s *commons) bug(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bugs = append(s.bugs, fmt.Sprintf(format, args...))
}

// hurried reports whether the shutdown has no time left.
func (s *commons) hurried() bool {
	select {
	case <-s.hurry.wait():
		return true
	default:
		return false
	}
}

// addZombie notes that the goroutine of c is on its own.
func (s *commons) addZombie(c survivor, exit *Exit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.zombies[c] = exit
}

// zombieEnded notes that it has come back after all.
func (s *commons) zombieEnded(c survivor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.zombies, c)
	s.fewer()
}

// addOrphan notes that c has lost its supervisor. late is called when it has not
// ended after limit, giveUp when the shutdown cannot wait for that.
func (s *commons) addOrphan(c survivor, limit time.Duration, late func(), giveUp func(*Exit)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	begun := time.Now()
	s.orphans[c] = orphan{time.AfterFunc(limit, func() {
		rest := limit - s.listened(begun)
		if rest <= 0 {
			late()
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if o, ok := s.orphans[c]; ok {
			o.timer.Reset(max(rest, catchUp))
		}
	}), giveUp}
}

// orphanEnded notes that it has ended, or was given up.
func (s *commons) orphanEnded(c survivor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o, ok := s.orphans[c]; ok {
		o.timer.Stop()
		delete(s.orphans, c)
		s.fewer()
	}
}

// giveUpOrphans gives up those that are left.
func (s *commons) giveUpOrphans(exit *Exit) {
	for {
		s.mu.Lock()
		left := maps.Clone(s.orphans)
		s.mu.Unlock()
		if len(left) == 0 {
			return
		}
		for c, o := range left {
			o.giveUp(exit)
			s.orphanEnded(c)
		}
	}
}

// survivors counts the orphans and the zombies.
func (s *commons) survivors() (orphans, zombies int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.orphans), len(s.zombies)
}

// fewer tells the shutdown that there is one orphan or zombie fewer.
func (s *commons) fewer() {
	select {
	case s.less <- struct{}{}:
	default:
	}
}

// leftovers names what did not end, by path.
func (s *commons) leftovers() []messages.Leftover {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]messages.Leftover, 0, len(s.zombies))
	for c, exit := range s.zombies {
		out = append(out, c.leftover(exit))
	}
	sortLeftovers(out)
	return out
}

func sortLeftovers(l []messages.Leftover) {
	slices.SortFunc(l, func(a, b messages.Leftover) int { return cmp.Compare(a.Path, b.Path) })
}
