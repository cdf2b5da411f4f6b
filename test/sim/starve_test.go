package sim_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/messages"
)

// This file is the scheduler of the machine, which starves whom it likes for as long as
// it likes: the host itself, which then hears nobody, or a kernel, which then answers
// nobody.

// span is a time in which somebody has no processor.
type span struct{ from, to time.Duration }

// spans are those of somebody, in any order; they do not overlap.
type spans []span

// since is how much of the time from then until now they cover.
func (l spans) since(then, now time.Duration) (sum time.Duration) {
	for _, s := range l {
		sum += max(0, min(s.to, now)-max(s.from, then))
	}
	return sum
}

// until is when the one that covers now ends; now if there is none.
func (l spans) until(now time.Duration) time.Duration {
	for _, s := range l {
		if s.from <= now && now < s.to {
			return s.to
		}
	}
	return now
}

// add adds one from now on, after all others.
func (l *spans) add(now, d time.Duration) {
	if from := l.until(now); now+d > from {
		*l = append(*l, span{from, now + d})
	}
}

// Stalled, Since and Last are what the tree hears of the host's standing still.
func (w *world) Stalled() time.Duration { return w.Since(w.began) }

func (w *world) Since(then time.Time) time.Duration {
	w.starving.Lock()
	defer w.starving.Unlock()
	return w.stalls.since(then.Sub(w.began), w.now())
}

func (w *world) Last() (last time.Time) {
	w.starving.Lock()
	defer w.starving.Unlock()
	for _, s := range w.stalls {
		last = w.began.Add(min(s.to, w.now()))
	}
	return last
}

// stall has the host stand still.
func (w *world) stall(d time.Duration) {
	w.starving.Lock()
	defer w.starving.Unlock()
	w.stalls.add(w.now(), d)
}

// thaw has the host go on: a tree that is shut down runs, whatever its clock is told.
func (w *world) thaw() {
	w.starving.Lock()
	defer w.starving.Unlock()
	for i := range w.stalls {
		w.stalls[i].to = max(w.stalls[i].from, min(w.stalls[i].to, w.now()))
	}
}

// starve takes the processor from the kernels of a session; of all sessions if it has
// no name.
func (w *world) starve(session string, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.starving.Lock()
	defer w.starving.Unlock()
	if session != "" {
		w.place(sessionKey(session).ID()).hungry.add(w.now(), d)
		return
	}
	for _, p := range w.places {
		p.hungry.add(w.now(), d)
	}
}

// starvedSince is how long an answer may have been late for want of a processor.
func (w *world) starvedSince(p *place, then time.Duration) time.Duration {
	w.starving.Lock()
	defer w.starving.Unlock()
	return p.hungry.since(then, w.now()) + w.stalls.since(then, w.now())
}

// heardAt is when an answer that is given now is heard: when the kernel has a processor,
// and the host too.
func (i *interp) heardAt() time.Duration {
	i.w.starving.Lock()
	defer i.w.starving.Unlock()
	now := i.w.now()
	for {
		at := i.w.stalls.until(i.at.hungry.until(now))
		if at == now {
			return now
		}
		now = at
	}
}

// Subject tells what the kernel waits for a processor.
func (i *interp) Subject() opportunity.Subject { return &hunger{i, i.w.now()} }

type hunger struct {
	i     *interp
	begun time.Duration
}

// Look tells of a wait when it is over. Before that it may be one.
func (h *hunger) Look(time.Time) (opportunity.Sample, error) {
	w := h.i.w
	w.starving.Lock()
	defer w.starving.Unlock()
	now, sample := w.now(), opportunity.Sample{Known: opportunity.Waits}
	for _, s := range h.i.at.hungry {
		d := max(0, min(s.to, now)-max(s.from, h.begun))
		if s.to > now {
			sample.Pending += d
		} else {
			sample.Waited += d
		}
	}
	return sample, nil
}

// starvation adds to a schedule who has no processor when. A kernel is starved for less
// than the heartbeat's ceiling in all, the host for as long as it likes.
func (s *schedule) starvation() {
	r := rand.New(rand.NewPCG(s.seed, 2))
	if chance(r, 30) {
		return
	}
	most := 100 * s.o.heartbeat
	for range r.IntN(6) {
		a := action{at: upTo(r, s.end), session: s.actions[r.IntN(len(s.actions))].session, length: upTo(r, pick(r, time.Second, 10*time.Second, 2*time.Minute))}
		switch r.IntN(3) {
		case 0:
			a.what, a.length = "stall", a.length*time.Duration(pick(r, 1, 1, 10))
		case 1:
			a.session = ""
			fallthrough
		default:
			if a.what = "starve"; a.length > most {
				continue
			}
			most -= a.length
		}
		s.actions = append(s.actions, a)
	}
}

// Every kernel is starved, and the host too, again and again, and each time longer: no
// session is lost, and a kernel that hangs meanwhile is found when it could have answered.
func TestNobodyIsEndedForWantOfAProcessor(t *testing.T) {
	t.Parallel()
	o := settings{capacity: 40, ttl: 100 * time.Hour, heartbeat: 5 * time.Second, grace: time.Second, tick: time.Second, history: 1 << 12}
	w := simulate(t, schedule{seed: 1, o: o, actions: hardTimes(), end: time.Hour})
	require.Empty(t, w.verdict())
	fresh := 0
	for _, c := range w.order {
		require.Equal(t, messages.OutcomeOK, c.result.Outcome)
		if c.result.State == messages.StateFresh {
			fresh++
		}
	}
	require.Equal(t, 40, fresh, "those that were new")
}

// hardTimes uses 40 sessions, starves them and the host in turn, and uses them again.
func hardTimes() []action {
	var list []action
	use := func(at time.Duration) {
		for n := range 40 {
			list = append(list, action{at: at, what: "submit", session: string(rune('a' + n)), submit: submission{cells: []messages.Cell{program(progRun, time.Second)}}})
		}
	}
	use(0)
	at := time.Minute
	for _, d := range []time.Duration{time.Second, 13 * time.Second, time.Minute, 4 * time.Minute} {
		list = append(list, action{at: at, what: "stall", length: d}, action{at: at + d + 10*time.Millisecond, what: "starve", length: d})
		at += 2*d + time.Minute
		list = append(list, action{at: at, what: "starve", length: d}, action{at: at + d/2, what: "stall", length: d})
		at += 2*d + time.Minute
		use(at)
	}
	return list
}
