package sim_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/coppice-run/coppice/messages"
)

// action is something that a host, or fate, does at an instant.
type action struct {
	at      time.Duration
	what    string // see world.do
	session string
	call    int // with cancel: which submit of the schedule is meant
	submit  submission
	length  time.Duration // with stall and starve
}

// submission is what a submit submits.
type submission struct {
	cells   []messages.Cell
	timeout time.Duration
	reset   bool
	perCall bool
	owner   string
	pause   time.Duration
}

// schedule is one run: a world, and what happens in it.
type schedule struct {
	seed    uint64
	o       settings
	actions []action
	burst   int           // chance, in percent, that a thing happens at the instant of the one before
	drain   time.Duration // how long before the end the tree takes no more calls; 0: not before
	end     time.Duration // when the tree is shut down, whatever goes on
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// generate makes the schedule of a seed.
func generate(seed uint64) schedule {
	r := rand.New(rand.NewPCG(seed, 1))
	s := schedule{seed: seed, o: settings{
		capacity: 1 + r.IntN(4), waiting: pick(r, 0, 1, 3, 100), tick: time.Second,
		ttl: pick(r, 10*time.Second, 30*time.Second, 2*time.Minute), heartbeat: pick(r, 2*time.Second, 5*time.Second),
		grace: pick(r, 500*time.Millisecond, 1500*time.Millisecond), history: 1 << 12,
		faults: faults{
			start: pick(r, 0, 100*time.Millisecond, 3*time.Second), close: pick(r, 0, time.Second, 5*time.Second),
			fail: pick(r, 0, 5, 30), exhausted: pick(r, 0, 0, 10), stuck: pick(r, 0, 0, 5), stubborn: pick(r, 0, 10),
			pauseEvery: pick(r, 0, 5, 20),
		},
	}}
	sessions := make([]string, s.o.capacity+r.IntN(6)+1)
	for i := range sessions {
		sessions[i] = fmt.Sprintf("s%d", i)
	}
	if chance(r, 30) {
		s.o.perOwner = 1 + r.IntN(s.o.capacity)
	}
	mean := pick(r, 20*time.Millisecond, 200*time.Millisecond, time.Second, 4*time.Second)
	s.burst = pick(r, 0, 0, 20, 60)
	at, calls := time.Duration(0), 0
	for range 60 + r.IntN(100) {
		switch {
		case chance(r, s.burst):
		case chance(r, 2):
			at += upTo(r, 2*s.o.ttl)
		default:
			at += upTo(r, 2*mean)
		}
		a := action{at: at, session: pick(r, sessions...), what: fate(r)}
		if a.what == "submit" {
			a.submit = s.call(r)
			a.call = calls
			calls++
			if chance(r, 15) {
				s.actions = append(s.actions, action{at: at + upTo(r, 4*time.Second), what: "cancel", call: a.call, session: a.session})
			}
		}
		s.actions = append(s.actions, a)
	}
	s.end = at + upTo(r, 20*time.Second)
	s.starvation()
	slices.SortStableFunc(s.actions, func(a, b action) int { return int(a.at - b.at) })
	if chance(r, 20) {
		s.drain = upTo(r, s.end/2)
	}
	s.o.faults.late = pick(r, 0, 0, 10, 40)
	return s
}

// owners are who may pay for a session; "" is nobody.
var owners = []string{"", "ann", "bob"}

// fate says what happens next.
func fate(r *rand.Rand) string {
	switch n := r.IntN(100); {
	case n < 59:
		return "submit"
	case n < 67:
		return "crash"
	case n < 71:
		return "freeze"
	case n < 77:
		return "pin"
	case n < 82:
		return "unpin"
	case n < 87:
		return "reset"
	case n < 90:
		return "close"
	case n < 92:
		return "interrupt"
	case n < 94:
		return "panic"
	case n < 95:
		return "goexit"
	case n < 97:
		return "release"
	default:
		return "snapshot"
	}
}

// call makes one call.
func (s *schedule) call(r *rand.Rand) submission {
	var c submission
	for range 1 + r.IntN(3)*r.IntN(2) {
		c.cells = append(c.cells, cell(r))
	}
	if chance(r, 15) {
		c.timeout = upTo(r, 6*time.Second) + time.Millisecond
	}
	c.reset, c.perCall = chance(r, 5), chance(r, 8)
	if s.o.perOwner > 0 {
		c.owner = pick(r, owners...)
	}
	if n := s.o.faults.pauseEvery; n > 0 && r.IntN(n) == 0 {
		c.pause = upTo(r, 3*time.Second)
	}
	return c
}

// cell makes one cell. Most are short, some only end when somebody ends them.
func cell(r *rand.Rand) messages.Cell {
	d := upTo(r, pick(r, time.Millisecond, 300*time.Millisecond, 3*time.Second))
	switch n := r.IntN(100); {
	case n < 70:
		return program(progRun, d)
	case n < 78:
		return program(progRaise, d)
	case n < 83:
		return program(progDeaf, d)
	case n < 90:
		return program(progDie, d)
	case n < 93:
		return program(progExit, d)
	case n < 95:
		return program(progFreeze, 0)
	case n < 97:
		return program(progRun, 20*d)
	default:
		return program(pick(r, progHang, progSwallow), 0)
	}
}
