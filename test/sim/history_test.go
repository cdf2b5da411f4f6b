package sim_test

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// entry is one thing that happened at a place.
type entry struct {
	at    time.Duration
	order int // among all entries of the world
	what  string
	call  string
	n     int // an interpreter, or a count
}

func (e entry) String() string {
	s := fmt.Sprintf("%14v  %s", e.at, e.what)
	if e.call != "" {
		s += " " + e.call
	}
	if e.n != 0 {
		s += fmt.Sprintf(" [%d]", e.n)
	}
	return s
}

// note adds to the history of a place, of which the last o.history entries are
// kept. The world's lock is held.
func (p *place) note(w *world, what, call string, n int) {
	w.entries++
	e := entry{w.now(), w.entries, what, call, n}
	if len(p.log) < w.o.history {
		p.log = append(p.log, e)
		return
	}
	p.log[p.logged%w.o.history] = e
	p.logged++
}

// story returns the history of a place, oldest first.
func (p *place) story() []entry {
	l := slices.Clone(p.log)
	slices.SortFunc(l, func(a, b entry) int { return a.order - b.order })
	return l
}

// maxBreaches is how many are told; what follows the first is often its
// consequence.
const maxBreaches = 5

// breach notes that an invariant does not hold, and ends the schedule. The
// world's lock is held. at may be nil.
func (w *world) breach(invariant int, at *place, format string, args ...any) {
	if len(w.breaches) == 0 {
		close(w.broken)
	}
	if len(w.breaches) >= maxBreaches {
		return
	}
	text := fmt.Sprintf("invariant %d: %s", invariant, fmt.Sprintf(format, args...))
	if at != nil {
		at.note(w, "*** "+text, "", 0)
		text = at.name + ": " + text
		if !slices.Contains(w.involved, at) {
			w.involved = append(w.involved, at)
		}
	}
	w.breaches = append(w.breaches, fmt.Sprintf("%v %s", w.now(), text))
}

// verdict says what is wrong, with the history of the places involved; "" when
// nothing is.
func (w *world) verdict() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.breaches) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: run it again with  go test ./test/sim -run 'Sim' -seed %d\n%+v\n", w.seed, w.seed, w.o)
	for _, s := range w.breaches {
		fmt.Fprintf(&b, "%s\n", s)
	}
	for _, p := range w.involved {
		w.tell(&b, p)
	}
	return b.String()
}

// tell writes the history of one place. The lock is held.
func (w *world) tell(b *strings.Builder, p *place) {
	fmt.Fprintf(b, "--- %s, instants from the start of the tree\n", p.name)
	for _, e := range p.story() {
		fmt.Fprintf(b, "%s\n", e)
	}
}

// histories returns everything that is known of all places, by name.
func (w *world) histories() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for name := range w.places {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		w.tell(&b, w.places[name])
	}
	return b.String()
}
