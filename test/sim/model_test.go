package sim_test

import (
	"slices"
	"strings"
	"time"

	"github.com/coppice-run/coppice/messages"
)

// model is what a gateway with its strategies is, as plainly as it can be said:
// a table of sessions, without actors, messages or races. It holds where
// interpreters start and end in no time.
type model struct {
	capacity, waiting int
	ttl               time.Duration
	now               time.Duration
	keys              map[string]*key
	line              []*key // who waits for a place, first come first served
	owners            map[string]map[string]bool
	want              map[string]expected // by call
	tie               bool                // one of two was to be evicted, and nothing says which
}

// expected is what the model says of a result.
type expected struct {
	Outcome messages.Outcome
	State   messages.State
}

// key is one session, or one call with a kernel of its own.
type key struct {
	name     string
	state    messages.ChildState // idle, busy, waiting or failed
	cells    int                 // what the interpreter has run
	given    bool                // a call was given to this interpreter
	restarts int                 // since a call was finished
	pinned   bool
	revive   bool // waits although no call does
	told     bool // to wait
	since    time.Duration
	hand     *job
	queue    []*job
}

// job is one call.
type job struct {
	id, kind string
	fresh    bool // a reset first
	single   bool // a kernel of its own
	state    messages.State
}

func (m *model) answer(j *job, o messages.Outcome, s messages.State) { m.want[j.id] = expected{o, s} }

// untouched is the state in the result of what never reached a kernel: none.
const untouched messages.State = ""

// answerAll answers everything that waits for k.
func (m *model) answerAll(k *key) {
	for _, j := range k.queue {
		m.answer(j, messages.OutcomeNotStarted, untouched)
	}
	k.queue = nil
}

// submit adds a call to a session's queue.
func (m *model) submit(name string, j *job) {
	if j.single {
		name = "call/" + j.id + "/" + name // see messages.SessionKey.CallID
	}
	k := m.keys[name]
	switch {
	case k == nil:
		k = &key{name: name, queue: []*job{j}}
		m.keys[name] = k
		m.place(k)
	case j.fresh && k.resetting():
		m.answer(j, messages.OutcomeNotStarted, untouched)
	case k.state == messages.ChildFailed && !j.fresh:
		m.answer(j, messages.OutcomeNotStarted, untouched)
	case k.state == messages.ChildFailed:
		k.queue, k.restarts, k.revive = append(k.queue, j), 0, true
		m.place(k)
	case k.state == messages.ChildIdle:
		k.queue = append(k.queue, j)
		m.work(k)
	default:
		k.queue = append(k.queue, j)
	}
	m.offer()
}

// resetting says that the call which is next asked for a reset and no kernel has begun it.
func (k *key) resetting() bool {
	first := k.hand
	if first == nil && len(k.queue) > 0 {
		first = k.queue[0]
	}
	return first != nil && first.fresh && k.state != messages.ChildBusy
}

// place has k stand in line for a kernel.
func (m *model) place(k *key) {
	k.state, k.told = messages.ChildWaiting, false
	m.line = append(m.line, k)
}

// offer gives those that stand in line what is free, first come first served,
// and tells the rest to wait or to go. What was given is used afterwards, since
// a kernel that starts is nobody's to evict.
func (m *model) offer() {
	for {
		var started []*key
		for _, k := range slices.Clone(m.line) {
			live, oldest := m.census()
			switch {
			case live < m.capacity || len(oldest) > 0:
				if live >= m.capacity {
					m.tie = m.tie || len(oldest) > 1
					m.forget(oldest[0])
				}
				m.unline(k)
				k.state = messages.ChildStarting
				started = append(started, k)
			case k.told:
			case slices.Index(m.line, k) < m.waiting:
				k.told = true
			default:
				m.answerAll(k)
				m.forget(k)
			}
		}
		if len(started) == 0 {
			return
		}
		for _, k := range started {
			m.start(k)
		}
	}
}

// census counts the kernels that live, and finds the one to evict, or those of
// which nothing says which is.
func (m *model) census() (live int, oldest []*key) {
	for _, o := range m.keys {
		if o.state == messages.ChildWaiting || o.state == messages.ChildFailed {
			continue
		}
		live++
		switch {
		case o.state != messages.ChildIdle || o.pinned:
		case len(oldest) == 0 || o.since < oldest[0].since:
			oldest = []*key{o}
		case o.since == oldest[0].since:
			oldest = append(oldest, o)
		}
	}
	return live, oldest
}

func (m *model) start(k *key) {
	k.state, k.cells, k.given, k.revive, k.since = messages.ChildIdle, 0, false, false, m.now
	m.work(k)
}

func (m *model) unline(k *key) {
	m.line = slices.DeleteFunc(m.line, func(o *key) bool { return o == k })
}

func (m *model) forget(k *key) {
	m.unline(k)
	delete(m.keys, k.name)
	delete(m.owners, k.name) // they own a kernel, not a name
}

// work gives an idle kernel what waits for it.
func (m *model) work(k *key) {
	for k.state == messages.ChildIdle && len(k.queue) > 0 {
		j := k.queue[0]
		if j.fresh && k.given {
			k.cells, k.given, k.restarts = 0, false, 0
		}
		k.queue, k.given = k.queue[1:], true
		j.state = messages.StateKept
		if k.cells++; k.cells == 1 {
			j.state = messages.StateFresh
		}
		m.run(k, j)
	}
}

func (m *model) run(k *key, j *job) {
	switch j.kind {
	case progRun:
		m.done(k, j, messages.OutcomeOK, j.state)
	case progRaise:
		m.done(k, j, messages.OutcomeError, j.state)
	case progExit:
		m.done(k, j, messages.OutcomeOK, messages.StateLost)
		if len(k.queue) == 0 || !k.queue[0].fresh { // a reset keeps the place
			m.ended(k)
		}
	case progDie:
		m.answer(j, messages.OutcomeLost, messages.StateLost)
		m.fail(k)
	default:
		k.hand, k.state = j, messages.ChildBusy
	}
}

// done is the end of a call that was finished: it gives the restart back.
func (m *model) done(k *key, j *job, o messages.Outcome, s messages.State) {
	m.answer(j, o, s)
	k.hand, k.state, k.restarts, k.since = nil, messages.ChildIdle, 0, m.now
	if j.single && j.kind != progExit {
		m.ended(k)
	}
}

// ended is the end in order of a kernel: what waits gets another one.
func (m *model) ended(k *key) {
	if len(k.queue) == 0 {
		m.forget(k)
		return
	}
	m.place(k)
}

// fail is the death of an interpreter: restarted once, then given up.
func (m *model) fail(k *key) {
	k.hand = nil
	switch {
	case len(k.queue) == 0 && isSingle(k):
		m.forget(k)
	case k.restarts > 0:
		k.state, k.since = messages.ChildFailed, m.now
		m.answerAll(k)
	default:
		k.restarts++
		k.state, k.cells, k.given, k.since = messages.ChildIdle, 0, false, m.now
	}
}

func isSingle(k *key) bool { return strings.HasPrefix(k.name, "call/") }

// lose is what happens to the call in hand when its interpreter goes.
func (m *model) lose(k *key, o messages.Outcome) {
	if k.hand != nil {
		m.answer(k.hand, o, messages.StateLost)
		k.hand = nil
	}
}
