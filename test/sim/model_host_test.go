package sim_test

import (
	"time"

	"github.com/coppice-run/coppice/messages"
)

// What hosts and fate do to a model.

// crash kills the interpreter of a session.
func (m *model) crash(name string) {
	k := m.keys[name]
	if k == nil || k.state != messages.ChildIdle && k.state != messages.ChildBusy {
		return
	}
	m.lose(k, messages.OutcomeLost)
	m.fail(k)
	m.work(k)
	m.offer()
}

// cancel ends the call that runs in a session, early.
func (m *model) cancel(name string) {
	k := m.keys[name]
	if k == nil || k.hand == nil {
		return
	}
	if k.hand.kind == progHang {
		m.done(k, k.hand, messages.OutcomeCancelled, k.hand.state)
	} else { // it does not stop, and costs the session its interpreter
		m.lose(k, messages.OutcomeCancelled)
		m.fail(k)
	}
	m.work(k)
	m.offer()
}

// leave takes the call that came last out of the queue.
func (m *model) leave(name string) {
	k := m.keys[name]
	if k == nil || len(k.queue) == 0 {
		return
	}
	last := len(k.queue) - 1
	m.answer(k.queue[last], messages.OutcomeCancelled, untouched)
	k.queue = k.queue[:last]
	if k.state == messages.ChildWaiting && last == 0 && !k.revive {
		m.forget(k)
	}
}

func (m *model) reset(name string) {
	k := m.keys[name]
	if k == nil {
		return
	}
	k.restarts = 0
	switch k.state {
	case messages.ChildFailed:
		k.revive = true
		m.place(k)
	case messages.ChildIdle, messages.ChildBusy:
		m.lose(k, messages.OutcomeCancelled)
		m.start(k)
	}
	m.offer()
}

func (m *model) close(name string) {
	m.end(name)
	m.offer()
}

// end closes a session; what becomes free is offered later.
func (m *model) end(name string) {
	delete(m.owners, name)
	k := m.keys[name]
	if k == nil {
		return
	}
	m.lose(k, messages.OutcomeCancelled)
	m.answerAll(k)
	m.forget(k)
}

// own notes that an owner uses a session.
func (m *model) own(name, owner string) {
	if owner == "" {
		return
	}
	if m.owners[name] == nil {
		m.owners[name] = map[string]bool{}
	}
	m.owners[name][owner] = true
}

// release closes the sessions that nobody else uses.
func (m *model) release(owner string) {
	for name, list := range m.owners {
		if list[owner] {
			if delete(list, owner); len(list) == 0 {
				m.end(name)
			}
		}
	}
	m.offer()
}

func (m *model) pin(name string, on bool) (known bool) {
	k := m.keys[name]
	if k == nil {
		return false
	}
	k.pinned = on
	m.offer()
	return true
}

// tick lets time do what it does by itself.
func (m *model) tick(now time.Duration) {
	m.now = now
	for _, k := range m.keys {
		quiet := k.state == messages.ChildIdle || k.state == messages.ChildFailed
		if quiet && !k.pinned && now-k.since >= m.ttl {
			m.forget(k)
		}
	}
	m.offer()
}

// drain refuses what waits; what runs goes on.
func (m *model) drain() {
	for _, k := range m.keys {
		m.answerAll(k)
		if k.state != messages.ChildBusy {
			m.forget(k)
		}
	}
}

// shutdown ends what runs.
func (m *model) shutdown() {
	for _, k := range m.keys {
		m.lose(k, messages.OutcomeCancelled)
		m.forget(k)
	}
}
