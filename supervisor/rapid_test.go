package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// world is the system under test together with the model of it.
type world struct {
	sys   *supervisor.System
	gate  supervisor.Ref
	model model

	works    []*modelWork // the test's own, as are the next three
	real     map[int]supervisor.Work
	replies  map[int]supervisor.Reply[string]
	returned map[int]bool // withdrawn: the test's own
	released []chan struct{}

	mu       sync.Mutex // guards what puppets write
	alive    map[string]int
	begun    map[string]int // the last work that the key began
	problems []string
	most     int
}

func (w *world) problem(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

// lives counts an incarnation of key in or out.
func (w *world) lives(key string, by int) {
	w.mu.Lock()
	w.alive[key] += by
	n, all := w.alive[key], 0
	for _, a := range w.alive {
		all += a
	}
	w.most = max(w.most, all)
	w.mu.Unlock()
	if n > 1 {
		w.problem("%s has %d live incarnations", key, n)
	}
}

// begins notes that key began the work id.
func (w *world) begins(key string, id int) {
	w.mu.Lock()
	last := w.begun[key]
	w.begun[key] = id
	w.mu.Unlock()
	if id <= last {
		w.problem("%s began %d after %d", key, id, last)
	}
}

func newWorld(t *rapid.T) *world {
	w := &world{
		real: make(map[int]supervisor.Work), replies: make(map[int]supervisor.Reply[string]),
		returned: make(map[int]bool), alive: make(map[string]int), begun: make(map[string]int),
	}
	d := &handler{spec: func(_ *supervisor.Supervisor, key string, _ supervisor.Work) (supervisor.Spec, error) {
		return supervisor.Spec{Kind: "puppet", New: func() supervisor.Behaviour { return &puppet{world: w, key: key} }}, nil
	}}
	d.changed = func(s *supervisor.Supervisor, e messages.ChildChanged) {
		if e.From == messages.ChildBusy && e.To == messages.ChildStopping && e.Exit != nil && e.Exit.Kind == messages.ExitEvicted {
			w.problem("%s was evicted while it was busy", e.Path)
		}
		live := 0
		for c := range s.Children() {
			if c.Live() {
				live++
			}
		}
		if live > modelCapacity {
			w.problem("%d live children", live)
		}
	}
	sys, err := supervisor.Start(context.Background(), supervisor.SystemOptions{Children: []supervisor.Spec{supervise("gate", supervisor.Options{
		Handler: d, MaxQueue: modelQueue,
		Strategy: strategy.Chain(strategy.RestartOnce(), strategy.Heartbeat(modelBeat),
			strategy.Pin(strategy.Chain(strategy.IdleTTL(modelTTL), strategy.LRUQueue(modelCapacity, modelWaiting)))),
	})}})
	if err != nil {
		t.Fatal(err)
	}
	w.sys, w.gate = sys, sys.Ref("gate")
	t.Cleanup(w.free)                  // a failed run has to leave its bubble empty, too
	time.Sleep(500 * time.Millisecond) // ticks come between the actions
	w.model.now = time.Now()
	return w
}

func (w *world) in(f func(*supervisor.Supervisor)) {
	w.gate.Tell(do(func(s *supervisor.Supervisor) error { f(s); return nil }))
	synctest.Wait()
}

func (w *world) tell(k *modelKey, msg any) {
	if !w.sys.Ref("gate", k.name).Tell(msg) {
		w.problem("%s is not there", k.name)
	}
	synctest.Wait()
}

func (w *world) submit(key string, fresh, last bool) {
	id := len(w.works) + 1
	mw := &modelWork{id: id, fresh: fresh, last: last}
	w.works = append(w.works, mw)
	work, reply := supervisor.NewWork[string](id)
	work.Fresh, work.Last = fresh, last
	w.real[id], w.replies[id] = work, reply
	w.in(func(s *supervisor.Supervisor) { s.Submit(key, work) })
	w.model.submit(key, mw)
}

// pick draws a key of the model that is in order, and skips the action if
// there is none.
func (w *world) pick(t *rapid.T, ok func(*modelKey) bool) *modelKey {
	var fit []*modelKey
	for _, k := range w.model.keys {
		if ok(k) {
			fit = append(fit, k)
		}
	}
	if len(fit) == 0 {
		t.Skip("no such key")
	}
	return rapid.SampledFrom(fit).Draw(t, "key")
}

func (k *modelKey) busy() bool    { return k.state == modelBusy && k.hung.IsZero() }
func (k *modelKey) up() bool      { return k.busy() || k.state == modelIdle }
func (k *modelKey) healthy() bool { return k.hung.IsZero() }

// actions are what can happen.
func (w *world) actions() map[string]func(*rapid.T) {
	m := &w.model
	keys := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"})
	submit := func(fresh, last bool) func(*rapid.T) {
		return func(t *rapid.T) { w.submit(keys.Draw(t, "key"), fresh, last) }
	}
	return map[string]func(*rapid.T){
		"submit":  submit(false, false),
		"submit2": submit(false, false),
		"fresh":   submit(true, false),
		"last":    submit(false, true),
		"finish": func(t *rapid.T) {
			k := w.pick(t, (*modelKey).busy)
			w.tell(k, finishCmd{})
			m.finish(k)
		},
		"crash": func(t *rapid.T) {
			k := w.pick(t, (*modelKey).up)
			w.tell(k, rapid.SampledFrom([]any{crashCmd{}, panicCmd{}}).Draw(t, "how"))
			m.crash(k)
		},
		"die": func(t *rapid.T) {
			k := w.pick(t, (*modelKey).up)
			w.tell(k, dieCmd{})
			m.die(k)
		},
		"hang": func(t *rapid.T) {
			// Two that are given up in the same tick come back in any order, and
			// that decides which one makes room for a third.
			if slices.ContainsFunc(m.keys, func(k *modelKey) bool { return !k.healthy() }) {
				t.Skip("one hangs already")
			}
			k := w.pick(t, (*modelKey).busy)
			release := make(chan struct{})
			w.released = append(w.released, release)
			w.tell(k, hangCmd{release})
			k.hung = m.now
		},
		"back": func(t *rapid.T) {
			if m.strays == 0 {
				t.Skip("nothing was given up")
			}
			close(w.released[0]) // the one that hangs, if any, is the last
			w.released = w.released[1:]
			m.back()
		},
		"reset": func(t *rapid.T) {
			k := w.pick(t, (*modelKey).healthy)
			w.in(func(s *supervisor.Supervisor) { s.Restart(k.name, supervisor.Exit{}) })
			m.reset(k)
		},
		"end": func(t *rapid.T) {
			k := w.pick(t, (*modelKey).healthy)
			w.in(func(s *supervisor.Supervisor) { s.End(k.name, supervisor.Exit{}) })
			m.end(k)
		},
		"pin": func(t *rapid.T) {
			k := w.pick(t, func(*modelKey) bool { return true })
			k.pinned = !k.pinned
			w.in(func(s *supervisor.Supervisor) { s.Pin(k.name, k.pinned) })
			m.room = m.room || !k.pinned
			m.offer()
		},
		"withdraw": func(t *rapid.T) {
			k := w.pick(t, func(k *modelKey) bool { return len(k.queue) > 0 })
			mw := rapid.SampledFrom(k.queue).Draw(t, "work")
			w.in(func(s *supervisor.Supervisor) {
				if !s.Withdraw(k.name, w.real[mw.id]) {
					w.problem("work %d did not wait", mw.id)
				}
			})
			m.withdraw(k, mw)
			w.returned[mw.id] = true
		},
		"cancel": func(t *rapid.T) {
			k := w.pick(t, func(k *modelKey) bool { return len(k.queue) > 0 })
			mw := rapid.SampledFrom(k.queue).Draw(t, "work")
			w.real[mw.id].Settle("cancelled")
			mw.settle("cancelled")
		},
		"wait": func(t *rapid.T) {
			for range rapid.IntRange(1, 25).Draw(t, "seconds") {
				time.Sleep(500 * time.Millisecond)
				synctest.Wait()
				m.now = time.Now()
				m.tick()
				time.Sleep(500 * time.Millisecond)
				m.now = time.Now()
			}
		},
		"drain": func(t *rapid.T) {
			if rapid.IntRange(0, 20).Draw(t, "rarely") != 0 {
				t.Skip()
			}
			w.in(func(s *supervisor.Supervisor) { s.Drain(supervisor.Exit{}) })
			m.drain()
		},
		"": w.check,
	}
}

// check compares the supervisor with the model.
func (w *world) check(t *rapid.T) {
	synctest.Wait()
	w.observed(t)
	var real, want []string
	w.in(func(s *supervisor.Supervisor) {
		for c := range s.Children() {
			running, _ := s.Running(c.Key)
			real = append(real, fmt.Sprintf("%s %s queue %d hand %v restarts %d pinned %t", c.Key, c.State, c.Queue, running.Msg, c.Restarts, c.Pinned))
		}
	})
	for _, k := range w.model.keys {
		var hand any
		if k.hand != nil {
			hand = k.hand.id
		}
		want = append(want, fmt.Sprintf("%s %s queue %d hand %v restarts %d pinned %t", k.name, k.state, len(k.queue), hand, k.restarts, k.pinned))
	}
	if !slices.Equal(real, want) {
		t.Fatalf("the supervisor has\n%q\nthe model\n%q", real, want)
	}
	for _, mw := range w.works {
		if got := w.answer(mw.id); got != mw.answer {
			t.Fatalf("work %d is answered %q, in the model %q", mw.id, got, mw.answer)
		}
	}
}

// observed fails with what the puppets saw.
func (w *world) observed(t *rapid.T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.problems) > 0 {
		t.Fatal(w.problems)
	}
	if w.most > modelCapacity {
		t.Fatalf("%d children lived at once", w.most)
	}
}

// answer is how the work was settled; empty if it was not.
func (w *world) answer(id int) string {
	r := w.replies[id]
	select {
	case <-r.Done():
	default:
		return ""
	}
	v, err := r.Wait(context.Background())
	for _, kind := range []struct {
		err  error
		name string
	}{
		{supervisor.ErrLost, "lost"},
		{supervisor.ErrEnded, "ended"},
		{supervisor.ErrDraining, "draining"},
		{supervisor.ErrOverloaded, "overloaded"},
		{supervisor.ErrExhausted, "exhausted"},
	} {
		if errors.Is(err, kind.err) {
			return kind.name
		}
	}
	if err != nil {
		return err.Error()
	}
	return v
}

// end shuts down, with whatever is in the queues, and checks that everything
// has its answer and nothing is left.
func (w *world) end(t *rapid.T) {
	report := w.sys.Shutdown(context.Background())
	w.free()
	for _, l := range report.Leftovers {
		if l.Exit.Kind != messages.ExitHung {
			t.Fatalf("left over: %v", l)
		}
	}
	for _, mw := range w.works {
		if !w.returned[mw.id] && w.answer(mw.id) == "" {
			t.Fatalf("work %d has no answer", mw.id)
		}
	}
	w.observed(t)
	if n := w.sys.Live() + w.sys.InHand() + w.sys.Zombies(); n != 0 {
		t.Fatalf("%d live, %d in hand, %d zombies", w.sys.Live(), w.sys.InHand(), w.sys.Zombies())
	}
	if bugs := w.sys.Bugs(); len(bugs) > 0 {
		t.Fatal(bugs)
	}
}

// free lets everything end.
func (w *world) free() {
	for _, release := range w.released {
		close(release)
	}
	w.released = nil
	w.sys.Shutdown(context.Background())
	synctest.Wait()
}

// TestModel drives a supervisor with RestartOnce, Heartbeat, Pin, IdleTTL and
// LRUQueue through everything that can happen to it, in any order, and
// compares it with the model after every step.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) {
			w := newWorld(t)
			t.Repeat(w.actions())
			w.end(t)
		})
	})
}
