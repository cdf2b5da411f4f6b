package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/coppice-run/coppice/bench/peers"
	"github.com/coppice-run/coppice/bench/record"
	"github.com/coppice-run/coppice/bench/scenario"
)

// defaultRounds is how often what is compared is repeated.
const defaultRounds = 12

// defaultServerRounds is how often a full run measures a server as it comes.
const defaultServerRounds = 2

// peerRounds is how often each peer is measured by a full run.
const peerRounds = 3

// step is one round of one scenario, or of a peer.
type step struct {
	name  string
	round int
	// expect is how long it takes on a machine with two processors, about.
	expect time.Duration
	run    func(ctx context.Context, tell func(text string)) (record.Result, error)
}

func (s step) String() string { return fmt.Sprintf("%s, round %d", s.name, s.round) }

// row is a line of the plan.
type row struct {
	scenario string
	o        scenario.Setup
	// rounds 0: as often as options.rounds says, so that two runs can be compared.
	rounds int
}

// brief takes minutes. What is compared between runs comes first.
var brief = []row{
	{"create", scenario.Setup{Backend: "runner", Duration: time.Second}, 0},
	{"exec", scenario.Setup{Backend: "runner", Sessions: 1, Rate: 100, Duration: time.Second}, 0},
	{"churn", scenario.Setup{Backend: "runner", Sessions: 150}, 0},
	{"exec", scenario.Setup{Backend: scenario.Fake, Sessions: 1000, Rate: 1000, Duration: time.Second}, 0},
	{"exec", scenario.Setup{Backend: "runner", Sessions: 1000}, 1},
	{"exec", scenario.Setup{Backend: "gateway", Sessions: 1, Duration: 5 * time.Second}, 1},
	{"exec", scenario.Setup{Backend: "gateway", Sessions: 10, Duration: 5 * time.Second}, 1},
	{"create", scenario.Setup{Backend: "gateway", Rate: .5, Duration: 12 * time.Second}, 1},
	{"ready", scenario.Setup{Backend: "runner", Sessions: 50}, 1},
	{"ready", scenario.Setup{Backend: "gateway", Sessions: 3}, 1},
	{"idle", scenario.Setup{Backend: "runner", Sessions: 100}, 1},
	{"idle", scenario.Setup{Backend: "runner", Sessions: 2000}, 1},
	{"idle", scenario.Setup{Backend: "gateway", Sessions: 5}, 1},
	{"burst", scenario.Setup{Backend: "runner", Sessions: 100}, 1},
	{"chatty", scenario.Setup{Backend: "runner"}, 1},
	{"flood", scenario.Setup{Backend: "runner"}, 1},
	{"flood", scenario.Setup{Backend: "gateway"}, 1},
	{"prints", scenario.Setup{Backend: "runner"}, 1},
	{"crashy", scenario.Setup{Backend: "runner"}, 1},
	{"crashy", scenario.Setup{Backend: "gateway"}, 1},
	{"crashy", scenario.Setup{Backend: scenario.Fake}, 1},
	{"evict", scenario.Setup{Backend: "runner"}, 1},
	{"evict", scenario.Setup{Backend: scenario.Fake}, 1},
	{"interrupt", scenario.Setup{Backend: "runner"}, 1},
	{"interrupt", scenario.Setup{Backend: "gateway"}, 1},
	{"fork", scenario.Setup{Backend: "runner"}, 1},
	{"hibernate", scenario.Setup{Backend: "runner"}, 1},
	{"sleepers", scenario.Setup{Backend: "runner", Sessions: 300}, 1},
	{"hostcalls", scenario.Setup{Backend: "runner"}, 1},
	{"rungs", scenario.Setup{Backend: "runner", Sessions: 30}, 1},
	{"mixed", scenario.Setup{Backend: "runner"}, 1},
}

// full takes up to an hour.
var full = []row{
	{"create", scenario.Setup{Backend: "runner"}, 0},
	{"exec", scenario.Setup{Backend: "runner", Sessions: 1, Rate: 100}, 0},
	{"churn", scenario.Setup{Backend: "runner", Sessions: 1000}, 0},
	{"exec", scenario.Setup{Backend: scenario.Fake, Sessions: 1000, Rate: 1000}, 0},
	{"exec", scenario.Setup{Backend: "runner", Sessions: 10}, 3},
	{"exec", scenario.Setup{Backend: "runner", Sessions: 100}, 3},
	{"exec", scenario.Setup{Backend: "runner", Sessions: 1000}, 3},
	{"exec", scenario.Setup{Backend: "runner", Sessions: 2000}, 2},
	{"exec", scenario.Setup{Backend: "runner", Sessions: 5000}, 1},
	{"exec", scenario.Setup{Backend: scenario.Fake, Sessions: 10_000}, 3},
	{"exec", scenario.Setup{Backend: scenario.Fake, Sessions: 100_000}, 1},
	{"exec", scenario.Setup{Backend: "gateway", Sessions: 1}, 3},
	{"exec", scenario.Setup{Backend: "gateway", Sessions: 10}, 3},
	{"exec", scenario.Setup{Backend: "gateway", Sessions: 30, Rate: 15, Duration: 20 * time.Second}, 2},
	{"exec", scenario.Setup{Backend: "gateway", Sessions: 100, Rate: 15, Duration: 20 * time.Second}, 1},
	{"create", scenario.Setup{Backend: "gateway", Duration: 30 * time.Second}, 3},
	{"create", scenario.Setup{Backend: scenario.Fake}, 3},
	{"ready", scenario.Setup{Backend: "runner"}, 3},
	{"ready", scenario.Setup{Backend: "gateway"}, 3},
	{"idle", scenario.Setup{Backend: "runner", Sessions: 10}, 2},
	{"idle", scenario.Setup{Backend: "runner", Sessions: 100}, 2},
	{"idle", scenario.Setup{Backend: "runner", Sessions: 1000}, 2},
	{"idle", scenario.Setup{Backend: "runner", Sessions: 2000}, 2},
	{"idle", scenario.Setup{Backend: "runner", Sessions: 5000}, 1},
	{"idle", scenario.Setup{Backend: "runner", Sessions: 10_000}, 1},
	{"idle", scenario.Setup{Backend: "gateway", Sessions: 10}, 1},
	{"idle", scenario.Setup{Backend: "gateway", Sessions: 100}, 1},
	{"idle", scenario.Setup{Backend: scenario.Fake, Sessions: 10_000}, 2},
	{"idle", scenario.Setup{Backend: scenario.Fake, Sessions: 100_000}, 1},
	{"churn", scenario.Setup{Backend: "runner", Sessions: 10_000}, 1},
	{"churn", scenario.Setup{Backend: scenario.Fake}, 3},
	{"burst", scenario.Setup{Backend: "runner", Sessions: 100}, 3},
	{"burst", scenario.Setup{Backend: "runner", Sessions: 1000}, 3},
	{"burst", scenario.Setup{Backend: "gateway", Sessions: 10}, 2},
	{"burst", scenario.Setup{Backend: "gateway", Sessions: 150}, 1},
	{"burst", scenario.Setup{Backend: scenario.Fake, Sessions: 10_000}, 3},
	{"chatty", scenario.Setup{Backend: "runner", Sessions: 100}, 3},
	{"chatty", scenario.Setup{Backend: "gateway"}, 3},
	{"flood", scenario.Setup{Backend: "runner", Duration: 16 * time.Second}, 1},
	{"flood", scenario.Setup{Backend: "gateway", Duration: 16 * time.Second}, 1},
	{"prints", scenario.Setup{Backend: "runner", Duration: 5 * time.Second}, 3},
	{"prints", scenario.Setup{Backend: "gateway", Duration: 5 * time.Second}, 2},
	{"crashy", scenario.Setup{Backend: "runner"}, 3},
	{"crashy", scenario.Setup{Backend: "gateway"}, 2},
	{"crashy", scenario.Setup{Backend: scenario.Fake, Duration: 30 * time.Second}, 2},
	{"evict", scenario.Setup{Backend: "runner"}, 3},
	{"evict", scenario.Setup{Backend: "gateway"}, 1},
	{"evict", scenario.Setup{Backend: scenario.Fake, Duration: 30 * time.Second}, 2},
	{"evict", scenario.Setup{Backend: scenario.Fake, Sessions: 100_000, Rate: 3000, Duration: 30 * time.Second}, 1},
	{"interrupt", scenario.Setup{Backend: "runner", Sessions: 50}, 3},
	{"interrupt", scenario.Setup{Backend: "gateway", Sessions: 10}, 3},
	{"fork", scenario.Setup{Backend: "runner", Sessions: 50}, 3},
	{"hibernate", scenario.Setup{Backend: "runner", Sessions: 50}, 3},
	{"sleepers", scenario.Setup{Backend: "runner", Sessions: 10_000}, 1},
	{"hostcalls", scenario.Setup{Backend: "runner", Sessions: 100}, 2},
	{"hostcalls", scenario.Setup{Backend: "gateway", Sessions: 5}, 2},
	{"rungs", scenario.Setup{Backend: "runner"}, 3},
	{"mixed", scenario.Setup{Backend: "runner", Duration: 30 * time.Second}, 2},
	{"mixed", scenario.Setup{Backend: "gateway", Duration: 30 * time.Second}, 1},
	{"soak", scenario.Setup{Backend: "runner", Duration: 10 * time.Minute}, 1},
}

// plan lists the steps. What is repeated is spread over the whole run, so that a
// machine that changes meanwhile changes for all alike, and the order of each
// round is drawn again. The soak is the last step: it takes the longest.
func (o options) plan(root string) ([]step, error) {
	rows, each := brief, 1
	if o.Full {
		rows, each = full, peerRounds
	}
	all := spread{r: rand.New(rand.NewPCG(o.Seed, 17)), rounds: make([][]step, cmp.Or(max(o.Rounds, 0), defaultRounds))}
	last, err := o.scenarios(rows, &all)
	if err != nil {
		return nil, err
	}
	if !o.Compared {
		for _, w := range o.besideRows() {
			all.place(w.rounds, o.wants, func(round int) step { return o.beside(w, root, round) })
		}
		w := o.coldRow()
		all.place(w.rounds, o.wants, func(round int) step { return o.cold(w, root, round) })
		if o.Full {
			all.place(defaultServerRounds, o.wants, func(round int) step { return o.defaultServer(root, round) })
		}
		for _, p := range peers.All() {
			if p.Available(peers.Options{Extras: o.extras}) == nil { // else leftOut says so
				all.place(each, o.wants, func(round int) step { return o.peer(p, root, round) })
			}
		}
	}
	steps := append(all.shuffled(), last...)
	if len(steps) == 0 {
		return nil, fmt.Errorf("nothing is called %q; names are scenario/backend/sessions, as exec/runner/100", o.Only)
	}
	return steps, nil
}

// scenarios places the scenarios, and returns those that come last.
func (o options) scenarios(rows []row, all *spread) (last []step, err error) {
	for _, w := range rows {
		if o.Compared && w.rounds != 0 {
			continue
		}
		steps := make([]step, cmp.Or(w.rounds, len(all.rounds)))
		for round := range steps {
			if steps[round], err = o.step(w, round); err != nil {
				return nil, err
			}
		}
		switch {
		case w.scenario != "soak":
			all.place(len(steps), o.wants, func(round int) step { return steps[round] })
		case o.wants(steps[0].name):
			last = append(last, steps[:min(len(steps), len(all.rounds))]...)
		}
	}
	return last, nil
}

// spread are the steps by round of the run.
type spread struct {
	r      *rand.Rand
	rounds [][]step
}

// place spreads n steps that are wanted over the run, and not more than it has rounds,
// from a round that is drawn; what every round has needs no draw.
func (s *spread) place(n int, wanted func(name string) bool, of func(round int) step) {
	offset, all := 0, len(s.rounds)
	if n < all {
		offset = s.r.IntN(all)
	}
	n = min(n, all)
	for round := range n {
		if next := of(round); wanted(next.name) {
			at := (offset + round*all/n) % all
			s.rounds[at] = append(s.rounds[at], next)
		}
	}
}

// shuffled returns all steps, those of each round in an order that is drawn.
func (s *spread) shuffled() []step {
	var steps []step
	for _, these := range s.rounds {
		s.r.Shuffle(len(these), func(i, j int) { these[i], these[j] = these[j], these[i] })
		steps = append(steps, these...)
	}
	return steps
}

func (o options) step(w row, round int) (step, error) {
	s, err := scenario.Find(w.scenario)
	if err != nil {
		return step{}, err
	}
	setup := w.o
	setup.Python, setup.Plant, setup.Seed = o.python, o.Plant, o.Seed+uint64(round)
	resolved, err := s.Check(setup)
	if err != nil {
		return step{}, err
	}
	name := fmt.Sprintf("%s/%s/%d", s.Name, resolved.Backend, resolved.Sessions)
	return step{name, round + 1, s.Expect(resolved), func(ctx context.Context, tell func(string)) (record.Result, error) {
		mine := setup
		mine.Progress = tell
		return s.Run(ctx, mine)
	}}, nil
}

func (o options) peer(p peers.Peer, root string, round int) step {
	return step{"peer/" + p.Name + "/1", round + 1, p.Expect(), func(ctx context.Context, _ func(string)) (record.Result, error) {
		return p.Run(ctx, peers.Options{Python: o.python, Root: root, Extras: o.extras})
	}}
}

// leftOut says which of the peers that are wanted cannot be measured here.
func (o options) leftOut() []string {
	var out []string
	for _, p := range peers.All() {
		if err := p.Available(peers.Options{Extras: o.extras}); err != nil && o.wants("peer/"+p.Name+"/1") && !o.Compared {
			out = append(out, err.Error())
		}
	}
	return out
}

func (o options) wants(name string) bool {
	if o.Only == "" {
		return true
	}
	for word := range strings.SplitSeq(o.Only, ",") {
		if word != "" && strings.Contains(name, word) {
			return true
		}
	}
	return false
}
