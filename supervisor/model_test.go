package supervisor_test

import (
	"slices"
	"strconv"
	"time"
)

// The model is the supervisor and its strategies in plain words, without actors:
// everything that is asynchronous there happens at once here. It is what
// TestModel compares with.

const (
	modelCapacity = 3
	modelWaiting  = 2
	modelQueue    = 3
	modelTTL      = 20 * time.Second
	modelBeat     = 2 * time.Second // patience is 5 s
)

type modelState string

const (
	modelNew  modelState = "new"
	modelWait modelState = "waiting"
	modelIdle modelState = "idle"
	modelBusy modelState = "busy"
	modelFail modelState = "failed"
)

// modelWork is one work; answer is empty until it is settled.
type modelWork struct {
	id          int
	fresh, last bool
	answer      string
}

type modelKey struct {
	name     string
	state    modelState
	queue    []*modelWork
	hand     *modelWork
	served   bool // by this incarnation
	hung     time.Time
	restarts int
	pinned   bool
	revive   bool
	told     bool // that it has to wait
	lastDone time.Time
	since    time.Time
	idleNo   int // counts how often anybody became idle
}

type model struct {
	now      time.Time
	keys     []*modelKey // in the order in which they became known
	waiting  []*modelKey
	idles    int
	strays   int  // incarnations that were given up and have not come back
	room     bool // something happened that those that wait are asked again for
	draining bool
}

func (m *model) key(name string) *modelKey {
	for _, k := range m.keys {
		if k.name == name {
			return k
		}
	}
	return nil
}

func (m *model) live() int {
	n := m.strays
	for _, k := range m.keys {
		if k.state == modelIdle || k.state == modelBusy {
			n++
		}
	}
	return n
}

func (w *modelWork) settle(answer string) {
	if w.answer == "" {
		w.answer = answer
	}
}

func (k *modelKey) refuse(answer string) {
	for _, w := range k.queue {
		w.settle(answer)
	}
	k.queue = nil
}

func (k *modelKey) trim() {
	for len(k.queue) > 0 && k.queue[0].answer != "" {
		k.queue = k.queue[1:]
	}
}

func (m *model) submit(name string, w *modelWork) {
	if m.draining {
		w.settle("draining")
		return
	}
	k := m.key(name)
	if k == nil {
		k = &modelKey{name: name, state: modelNew}
		m.keys = append(m.keys, k)
	}
	if len(k.queue) >= modelQueue { // what was cancelled takes no place
		k.queue = slices.DeleteFunc(k.queue, func(w *modelWork) bool { return w.answer != "" })
	}
	if len(k.queue) >= modelQueue {
		w.settle("overloaded")
		return
	}
	k.queue = append(k.queue, w)
	m.step(k)
}

// step does what there is to do for a key.
func (m *model) step(k *modelKey) {
	switch k.state {
	case modelIdle:
		m.dispatch(k)
	case modelFail:
		k.refuse("exhausted")
	case modelNew, modelWait:
		k.trim()
		if len(k.queue) == 0 && !k.revive {
			m.forget(k)
			break
		}
		if !slices.Contains(m.waiting, k) {
			m.waiting = append(m.waiting, k)
		}
		k.state, m.room = modelWait, true
	}
	m.offer()
}

// offer starts those that wait, as far as there is room or room can be made.
func (m *model) offer() {
	for m.room {
		m.room = false
		full := false
		for i, k := range slices.Clone(m.waiting) {
			if full && k.told {
				continue // the answer would be the same
			}
			k.trim()
			if len(k.queue) == 0 && !k.revive {
				m.forget(k)
				m.room = true
				break
			}
			if m.live() >= modelCapacity {
				if v := m.oldest(); v != nil {
					m.forget(v)
				}
			}
			if m.live() < modelCapacity {
				m.waiting = slices.Delete(m.waiting, i, i+1)
				m.up(k)
				m.dispatch(k)
				m.room = true
				break
			}
			if i >= modelWaiting {
				k.refuse("overloaded")
				m.forget(k)
				m.room = true
				break
			}
			k.told, full = true, true
		}
	}
}

// oldest is the child that is evicted first.
func (m *model) oldest() *modelKey {
	var o *modelKey
	for _, k := range m.keys {
		if k.state == modelIdle && !k.pinned && len(k.queue) == 0 && (o == nil || k.idleNo < o.idleNo) {
			o = k
		}
	}
	return o
}

// up is a new incarnation.
func (m *model) up(k *modelKey) {
	k.state, k.served, k.revive, k.hung, k.lastDone = modelIdle, false, false, time.Time{}, m.now
	k.told = false
	m.room = true // for a moment there was one less
	m.idled(k)
}

func (m *model) idled(k *modelKey) {
	m.idles++
	k.idleNo = m.idles
}

func (m *model) dispatch(k *modelKey) {
	k.trim()
	switch {
	case m.draining:
		m.forget(k)
	case len(k.queue) == 0:
		k.state, m.room = modelIdle, true
	case k.queue[0].fresh && k.served:
		k.restarts = 0
		m.up(k)
		m.dispatch(k)
	default:
		k.hand, k.queue = k.queue[0], k.queue[1:]
		k.state, k.served = modelBusy, true
	}
}

func (m *model) forget(k *modelKey) {
	m.keys = slices.DeleteFunc(m.keys, func(o *modelKey) bool { return o == k })
	m.waiting = slices.DeleteFunc(m.waiting, func(o *modelKey) bool { return o == k })
	m.room = true
}

func (m *model) finish(k *modelKey) {
	w := k.hand
	k.hand = nil
	w.settle("done")
	k.restarts, k.lastDone = 0, m.now
	m.idled(k)
	if w.last {
		m.ended(k)
		return
	}
	m.dispatch(k)
	m.offer()
}

// ended is the end of an incarnation that nothing is planned after.
func (m *model) ended(k *modelKey) {
	k.hand, k.state, m.room = nil, modelNew, true
	m.step(k)
}

// crash is a failure after the start.
func (m *model) crash(k *modelKey) {
	w := k.hand
	k.hand = nil
	if w != nil {
		w.settle("lost")
	}
	switch {
	case m.draining:
		m.forget(k)
	case k.restarts > 0:
		k.refuse("exhausted")
		k.state, k.since, m.room = modelFail, m.now, true
	case w != nil && w.last:
		m.ended(k)
		return
	case !k.hung.IsZero(): // it was given up, and keeps its place
		k.hung, k.restarts, k.revive, k.state = time.Time{}, 1, true, modelNew
		m.step(k)
		return
	default:
		m.up(k)
		k.restarts = 1
		m.dispatch(k)
	}
	m.offer()
}

func (m *model) die(k *modelKey) {
	if k.hand != nil {
		k.hand.settle("lost")
	}
	m.ended(k)
}

func (m *model) reset(k *modelKey) {
	k.restarts = 0
	switch {
	case m.draining:
	case k.state == modelFail:
		k.revive, k.state = true, modelNew
		m.step(k)
	case k.state == modelIdle || k.state == modelBusy:
		if k.hand != nil {
			k.hand.settle("lost")
			k.hand = nil
		}
		m.up(k)
		m.dispatch(k)
		m.offer()
	}
}

func (m *model) end(k *modelKey) {
	if k.hand != nil {
		k.hand.settle("lost")
	}
	k.refuse("ended")
	m.forget(k)
	m.offer()
}

func (m *model) withdraw(k *modelKey, w *modelWork) {
	k.queue = slices.DeleteFunc(k.queue, func(o *modelWork) bool { return o == w })
	m.step(k)
}

func (m *model) drain() {
	m.draining = true
	for _, k := range slices.Clone(m.keys) {
		k.refuse("draining")
		if k.state != modelBusy {
			m.forget(k)
		}
	}
}

// tick is what the strategies do once a second.
func (m *model) tick() {
	for _, k := range slices.Clone(m.waiting) {
		if k.trim(); len(k.queue) == 0 && !k.revive {
			m.forget(k)
		}
	}
	var hung, idle []*modelKey
	for _, k := range m.keys {
		if k.state == modelBusy && !k.hung.IsZero() && m.now.Sub(k.hung) > 2*modelBeat+modelBeat/2 {
			hung = append(hung, k)
		}
		switch {
		case k.pinned:
		case k.state == modelIdle && len(k.queue) == 0 && m.now.Sub(k.lastDone) >= modelTTL,
			k.state == modelFail && m.now.Sub(k.since) >= modelTTL:
			idle = append(idle, k)
		}
	}
	for _, k := range hung {
		m.strays++
		m.crash(k)
	}
	for _, k := range idle {
		m.forget(k)
	}
	m.offer()
}

// back is the return of a stray.
func (m *model) back() {
	m.strays--
	m.room = true
	m.offer()
}

// GoString keeps what rapid prints of a failure short.
func (k *modelKey) GoString() string { return k.name }

// GoString keeps what rapid prints of a failure short.
func (w *modelWork) GoString() string { return strconv.Itoa(w.id) }
