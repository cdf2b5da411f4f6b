package sim_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/messages"
)

// command is one step of the state machine. Each is legal in every state.
type command struct {
	Do      string
	Session string
	Kind    string // with submit: the program
	Fresh   bool   // with submit: a reset first
	Single  bool   // with submit: a kernel of its own
	Owner   string // with submit and release
	Minutes int    // with wait
}

func (c command) String() string {
	s := c.Do + " " + c.Session
	for _, word := range []string{c.Kind, c.Owner} {
		if word != "" {
			s += " " + word
		}
	}
	switch {
	case c.Fresh:
		s += " fresh"
	case c.Single:
		s += " single"
	case c.Minutes > 0:
		s = fmt.Sprint("wait ", c.Minutes, "m")
	}
	return s
}

// script is what one check of the property runs.
type script struct {
	Waiting  int
	Commands []command
}

var drawCommand = rapid.Custom(func(t *rapid.T) command {
	c := command{
		Do: rapid.SampledFrom([]string{
			"submit", "submit", "submit", "submit", "submit", "submit", "crash", "freeze", "cancel", "cancel", "leave",
			"reset", "close", "pin", "unpin", "release", "wait",
		}).Draw(t, "do"),
		Session: rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "session"),
	}
	switch c.Do {
	case "submit":
		c.Kind = rapid.SampledFrom([]string{
			progRun, progRun, progRun, progRaise, progDie, progExit, progHang, progHang, progSwallow,
		}).Draw(t, "kind")
		c.Owner = rapid.SampledFrom(owners).Draw(t, "owner")
		switch rapid.IntRange(0, 9).Draw(t, "how") {
		case 0:
			c.Fresh = true
		case 1:
			c.Single = true
			c.Owner = ""
		}
	case "release":
		c.Owner = rapid.SampledFrom(owners[1:]).Draw(t, "owner")
	case "wait":
		c.Minutes = rapid.IntRange(1, 6).Draw(t, "minutes")
	}
	return c
})

var drawScript = rapid.Custom(func(t *rapid.T) script {
	return script{
		Waiting:  rapid.IntRange(0, 2).Draw(t, "waiting"),
		Commands: slices.Concat(rapid.SliceOfN(rapid.SliceOfN(drawCommand, 1, 12), 1, 20).Draw(t, "commands")...), // longer than one slice is on average
	}
})

// TestTheTreeIsItsModel runs the tree beside the model, one command at a time,
// and compares after each what was answered and what there is. It stops where
// two sessions that became idle at the same instant are the next to be evicted:
// which one goes is not the model's to say. The commands
// are drawn first and run then, because shrinking is bounded by real time and
// the run takes virtual days.
func TestTheTreeIsItsModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawScript.Draw(rt, "script")
		if text := s.run(t); text != "" {
			rt.Fatal(text)
		}
	})
}

// run returns how the tree differs from the model; "" when it does not.
func (s script) run(t *testing.T) (text string) {
	synctest.Test(t, func(t *testing.T) {
		o := settings{
			capacity: 2, waiting: s.Waiting, ttl: ttl, heartbeat: 5 * time.Second, grace: 1500 * time.Millisecond,
			tick: time.Second, history: 1 << 10,
		}
		p := pair{
			w:    newWorld(t, 1, o),
			m:    &model{capacity: 2, waiting: s.Waiting, ttl: ttl, keys: map[string]*key{}, owners: map[string]map[string]bool{}, want: map[string]expected{}},
			open: map[string][]*call{},
		}
		p.w.until(250 * time.Millisecond) // no command on a tick
		for i, c := range s.Commands {
			if p.step(c); p.m.tie || !p.same(fmt.Sprintf("after command %d: %s", i+1, c)) {
				break
			}
		}
		if p.text == "" && !p.m.tie {
			p.w.drain()
			p.m.drain()
			synctest.Wait()
			p.same("after drain")
		}
		p.w.shutdown()
		p.m.shutdown()
		if p.text == "" && !p.m.tie {
			p.sameResults("after shutdown")
		}
		if verdict := p.w.verdict(); p.text == "" && verdict != "" {
			p.text = verdict
		} else if p.text != "" {
			p.text += "\n" + p.w.histories()
		}
		text = p.text
	})
	return text
}

// ttl is a little less than five minutes, so that with commands at even seconds
// no kernel is due at the very instant of a command.
const ttl = 5*time.Minute - 1100*time.Millisecond

// pair is a tree and its model.
type pair struct {
	w    *world
	m    *model
	open map[string][]*call // by session, calls that may be unanswered, oldest first
	text string             // the first difference
}

// step does one command to both, and lets everything happen that follows.
func (p *pair) step(c command) {
	w, m, name := p.w, p.m, sessionKey(c.Session).ID()
	m.now = w.now()
	pause := 2 * time.Second // the grace for a cell that does not stop
	switch c.Do {
	case "submit":
		call := w.submit(c.Session, []messages.Cell{program(c.Kind, 0)}, func(e *messages.Execute) {
			e.Reset, e.Owner = c.Fresh, c.Owner
			if c.Single {
				e.Mode = messages.ModePerCall
			}
		}, 0)
		if k := m.keys[name]; !c.Fresh || k == nil || !k.resetting() { // who is refused a reset does not use the session
			m.own(name, c.Owner)
		}
		m.submit(name, &job{id: call.exec.ID, kind: c.Kind, fresh: c.Fresh, single: c.Single})
		p.open[call.place.name] = append(p.open[call.place.name], call)
	case "crash":
		w.crash(c.Session)
		m.crash(name)
	case "freeze":
		pause = 40 * time.Second
		if k := m.keys[name]; k != nil && k.state == messages.ChildIdle && w.now()+pause-k.since >= ttl {
			return // whether it is evicted or found frozen first is not the model's to say
		}
		w.freeze(c.Session)
	case "cancel", "leave":
		p.cancel(c, name)
	case "reset":
		w.reset(c.Session)
		m.reset(name)
	case "close":
		w.close(c.Session)
		m.close(name)
	case "release":
		w.release(c.Owner)
		m.release(c.Owner)
	case "pin", "unpin":
		w.pin(c.Session, c.Do == "pin")
		m.pin(name, c.Do == "pin")
	case "wait":
		pause = time.Duration(c.Minutes) * time.Minute
	}
	synctest.Wait()
	w.until(w.now() + pause)
	synctest.Wait()
	if c.Do == "freeze" {
		p.frozen(name)
	}
	m.tick(w.now())
}

// cancel has the caller of the running call leave, or that of the last waiting
// one.
func (p *pair) cancel(c command, name string) {
	k := p.m.keys[name]
	if k == nil {
		return
	}
	id := ""
	switch {
	case c.Do == "cancel" && k.hand != nil:
		id = k.hand.id
		p.m.now += 1500 * time.Millisecond * time.Duration(b2i(k.hand.kind == progSwallow))
		p.m.cancel(name)
	case c.Do == "leave" && len(k.queue) > 0:
		id = k.queue[len(k.queue)-1].id
		p.m.leave(name)
	}
	for _, call := range p.open[name] {
		if call.exec.ID == id {
			p.w.cancel(call)
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// frozen tells the model of an interpreter that was found frozen. When that was
// is the tree's to say: two and a half to four heartbeats later.
func (p *pair) frozen(name string) {
	p.w.mu.Lock()
	p.m.now = p.w.place(name).hung
	p.w.mu.Unlock()
	if k := p.m.keys[name]; k != nil && (k.state == messages.ChildIdle || k.state == messages.ChildBusy) {
		p.m.crash(name)
	}
}

// same compares the tree with its model.
func (p *pair) same(when string) bool {
	return p.sameResults(when) && p.sameTree(when)
}

// sameResults compares what was answered.
func (p *pair) sameResults(when string) bool {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	got := map[string]expected{}
	for _, c := range p.w.order {
		if c.answered {
			got[c.exec.ID] = expected{c.result.Outcome, c.result.State}
		}
	}
	return p.differ(when, "results", cmp.Diff(p.m.want, got))
}

// node is what both say of a session.
type node struct {
	State  messages.ChildState
	Queue  int
	Pinned bool
}

func (p *pair) sameTree(when string) bool {
	want, got := map[string]node{}, map[string]node{}
	for name, k := range p.m.keys {
		want[name] = node{k.state, len(k.queue), k.pinned}
	}
	tree, err := p.w.system.Snapshot(context.Background())
	if err != nil || len(tree.Children) != 1 {
		return p.differ(when, "tree", fmt.Sprint(err, tree))
	}
	for _, n := range tree.Children[0].Children {
		got[n.Name] = node{n.State, n.Queue, n.Pinned}
	}
	return p.differ(when, "sessions", cmp.Diff(want, got))
}

func (p *pair) differ(when, what, diff string) bool {
	if diff == "" || p.text != "" {
		return p.text == ""
	}
	p.text = strings.Join([]string{when, "the " + what + " differ, model against tree:", diff}, "\n")
	for _, k := range p.m.keys {
		p.text += fmt.Sprintf("%s: %+v\n", k.name, *k)
	}
	return false
}
