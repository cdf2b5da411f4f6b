package kernel

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Turns admits starts of interpreters that keep a processor busy for a while, as many
// at a time as there are processors: more would only slow each other, and those
// sessions that run. They are admitted in the order in which they came. A fork of a
// warm interpreter takes a millisecond or two and needs no turn. The zero value admits
// as many as GOMAXPROCS says. Any goroutine may use it.
type Turns struct {
	// AtOnce is how many. 0: runtime.GOMAXPROCS.
	AtOnce int

	mu      sync.Mutex
	running int             // guarded by mu
	waiting []chan struct{} // guarded by mu: closed when it is their turn
	came    int             // guarded by mu: since no one waited last
}

const (
	// turnMost is how long a start keeps its place: one that hangs holds up the others
	// for no longer.
	turnMost = 30 * time.Second
	// turnTold is how often who waits is told its place.
	turnTold = time.Second
)

// Take waits for a turn. The caller gives it back, once or more often. tell and
// waiting are those of [StartOptions], nil for none; they hear only of a turn that has
// to be waited for. The error is that of ctx.
func (t *Turns) Take(ctx context.Context, tell func(string), waiting func(Waiting)) (back func(), err error) {
	mine := t.enter()
	if mine == nil {
		return t.back(), nil
	}
	if waiting != nil {
		waiting(Waiting{Turn: true})
	}
	ticker := time.NewTicker(turnTold)
	defer ticker.Stop()
	for {
		if at, of := t.place(mine); at > 0 && tell != nil {
			tell(fmt.Sprintf("waiting for its turn: start %d of %d", at, of))
		}
		select {
		case <-mine:
			return t.back(), nil
		case <-ticker.C:
		case <-ctx.Done():
			if !t.leave(mine) {
				t.back()() // its turn came just now
			}
			return nil, fmt.Errorf("wait for a turn to start: %w", context.Cause(ctx))
		}
	}
}

// enter returns nil when it is the caller's turn at once.
func (t *Turns) enter() chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	most := t.AtOnce
	if most <= 0 {
		most = runtime.GOMAXPROCS(0)
	}
	if t.running < most && len(t.waiting) == 0 {
		t.running++
		return nil
	}
	if len(t.waiting) == 0 {
		t.came = 0
	}
	t.came++
	mine := make(chan struct{})
	t.waiting = append(t.waiting, mine)
	return mine
}

// place tells which start is the next: that of all those which came while others
// waited. 0: it does not wait.
func (t *Turns) place(mine chan struct{}) (at, of int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.waiting, mine)
	return i + 1, max(t.came, len(t.waiting))
}

// leave gives up a place in the queue. False: it was its turn.
func (t *Turns) leave(mine chan struct{}) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.waiting, mine)
	if i < 0 {
		return false
	}
	t.waiting = slices.Delete(t.waiting, i, i+1)
	return true
}

// back returns the function that gives a turn back, which time does, too.
func (t *Turns) back() func() {
	var once sync.Once
	give := func() {
		once.Do(func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			if len(t.waiting) == 0 {
				t.running--
				return
			}
			close(t.waiting[0]) // the place is handed on
			t.waiting = slices.Delete(t.waiting, 0, 1)
		})
	}
	late := time.AfterFunc(turnMost, give)
	return func() {
		late.Stop()
		give()
	}
}
