package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/coppice-run/coppice/bench/peers"
	"github.com/coppice-run/coppice/bench/record"
	"github.com/coppice-run/coppice/bench/scenario"
)

type options struct {
	full              bool
	out, only, python string
	profile           string // the folder for profiles, "" for none
	rounds            int
	plant             float64
	seed              uint64
	command           string
}

// step is one round of one scenario, or of a peer.
type step struct {
	name  string
	round int
	run   func(ctx context.Context) (record.Result, error)
}

// errSome is returned when something failed and the rest was measured.
var errSome = errors.New("not everything could be measured; the file says what")

// measure runs the plan and writes the file after each step, so that a run that is
// interrupted has what it had.
func (o options) measure(ctx context.Context, w io.Writer) error {
	if o.python == "" {
		return errors.New("no interpreter: set COPPICE_TEST_PYTHON or -python; `make test-env` makes one")
	}
	root, err := peers.Root(".")
	if err != nil {
		return err
	}
	steps, err := o.plan(root)
	if err != nil {
		return err
	}
	f := record.File{Made: time.Now().UTC(), Commit: record.Commit(), Machine: record.ThisMachine(ctx, o.python), Command: o.command}
	failed := 0
	begin := time.Now()
	for i, s := range steps {
		if ctx.Err() != nil {
			break
		}
		_, _ = fmt.Fprintf(w, "[%d/%d %s] %s, round %d ... ", i+1, len(steps), time.Since(begin).Round(time.Second), s.name, s.round)
		floor, err := peers.Floor(ctx, peers.Options{Python: o.python, Root: root})
		if err != nil {
			return fmt.Errorf("measure the floor: %w", err)
		}
		r, err := profiled(ctx, o.profile, s)
		r.Round, r.Floor = s.round, floor
		f.Results = append(f.Results, r)
		if err != nil {
			failed++
			_, _ = fmt.Fprintf(w, "failed: %v\n", err)
		} else {
			_, _ = fmt.Fprintf(w, "%s %s\n", r.Took.Round(100*time.Millisecond), short(r))
		}
		if err := f.Write(o.out); err != nil {
			return err
		}
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("interrupted; %s has what was measured: %w", o.out, context.Cause(ctx))
	case failed > 0:
		return fmt.Errorf("%d of %d steps failed: %w", failed, len(steps), errSome)
	}
	return nil
}

// short tells the first metrics of a result.
func short(r record.Result) string {
	var parts []string
	for _, m := range r.Metrics[:min(4, len(r.Metrics))] {
		parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s %.0f %s", m.Name, m.Value, m.Unit)))
	}
	return strings.Join(parts, "  ")
}

// row is a line of the plan.
type row struct {
	scenario string
	o        scenario.Setup
	// rounds 0: as often as options.rounds says.
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
	{"idle", scenario.Setup{Backend: "runner", Sessions: 100}, 1},
	{"idle", scenario.Setup{Backend: "runner", Sessions: 2000}, 1},
	{"idle", scenario.Setup{Backend: "gateway", Sessions: 5}, 1},
	{"burst", scenario.Setup{Backend: "runner", Sessions: 100}, 1},
	{"chatty", scenario.Setup{Backend: "runner"}, 1},
	{"flood", scenario.Setup{Backend: "runner"}, 1},
	{"flood", scenario.Setup{Backend: "gateway"}, 1},
	{"crashy", scenario.Setup{Backend: "runner"}, 1},
	{"crashy", scenario.Setup{Backend: "gateway"}, 1},
	{"crashy", scenario.Setup{Backend: scenario.Fake}, 1},
	{"evict", scenario.Setup{Backend: "runner"}, 1},
	{"evict", scenario.Setup{Backend: scenario.Fake}, 1},
	{"fork", scenario.Setup{Backend: "runner"}, 1},
	{"hostcalls", scenario.Setup{Backend: "runner"}, 1},
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
	{"exec", scenario.Setup{Backend: "gateway", Sessions: 1}, 3},
	{"exec", scenario.Setup{Backend: "gateway", Sessions: 10}, 3},
	{"exec", scenario.Setup{Backend: "gateway", Sessions: 30, Rate: 15, Duration: 20 * time.Second}, 2},
	{"exec", scenario.Setup{Backend: "gateway", Sessions: 100, Rate: 15, Duration: 20 * time.Second}, 1},
	{"create", scenario.Setup{Backend: "gateway", Duration: 30 * time.Second}, 3},
	{"create", scenario.Setup{Backend: scenario.Fake}, 3},
	{"idle", scenario.Setup{Backend: "runner", Sessions: 10}, 2},
	{"idle", scenario.Setup{Backend: "runner", Sessions: 100}, 2},
	{"idle", scenario.Setup{Backend: "runner", Sessions: 1000}, 2},
	{"idle", scenario.Setup{Backend: "runner", Sessions: 2000}, 2},
	{"idle", scenario.Setup{Backend: "runner", Sessions: 5000}, 1},
	{"idle", scenario.Setup{Backend: "gateway", Sessions: 10}, 1},
	{"idle", scenario.Setup{Backend: "gateway", Sessions: 100}, 1},
	{"idle", scenario.Setup{Backend: scenario.Fake, Sessions: 10_000}, 2},
	{"churn", scenario.Setup{Backend: "runner", Sessions: 10_000}, 1},
	{"churn", scenario.Setup{Backend: scenario.Fake}, 3},
	{"burst", scenario.Setup{Backend: "runner", Sessions: 100}, 3},
	{"burst", scenario.Setup{Backend: "runner", Sessions: 1000}, 3},
	{"burst", scenario.Setup{Backend: "gateway", Sessions: 10}, 2},
	{"burst", scenario.Setup{Backend: scenario.Fake, Sessions: 10_000}, 3},
	{"chatty", scenario.Setup{Backend: "runner", Sessions: 100}, 3},
	{"chatty", scenario.Setup{Backend: "gateway"}, 3},
	{"flood", scenario.Setup{Backend: "runner", Duration: 16 * time.Second}, 1},
	{"flood", scenario.Setup{Backend: "gateway", Duration: 16 * time.Second}, 1},
	{"crashy", scenario.Setup{Backend: "runner"}, 3},
	{"crashy", scenario.Setup{Backend: "gateway"}, 2},
	{"crashy", scenario.Setup{Backend: scenario.Fake, Duration: 30 * time.Second}, 2},
	{"evict", scenario.Setup{Backend: "runner"}, 3},
	{"evict", scenario.Setup{Backend: "gateway"}, 1},
	{"evict", scenario.Setup{Backend: scenario.Fake, Duration: 30 * time.Second}, 2},
	{"fork", scenario.Setup{Backend: "runner", Sessions: 50}, 3},
	{"hostcalls", scenario.Setup{Backend: "runner", Sessions: 100}, 2},
	{"hostcalls", scenario.Setup{Backend: "gateway", Sessions: 5}, 2},
	{"mixed", scenario.Setup{Backend: "runner", Duration: 30 * time.Second}, 2},
	{"mixed", scenario.Setup{Backend: "gateway", Duration: 30 * time.Second}, 1},
	{"soak", scenario.Setup{Backend: "runner", Duration: 10 * time.Minute}, 1},
}

// plan lists the steps: the rounds of what is compared mixed with each other, the
// order of each round drawn anew, then the rest.
func (o options) plan(root string) ([]step, error) {
	rows, rounds := brief, 12
	if o.full {
		rows, rounds = full, 12
	}
	if o.rounds > 0 {
		rounds = o.rounds
	}
	var mixed, rest []step
	r := rand.New(rand.NewPCG(o.seed, 17))
	for round := range rounds {
		var these []step
		for _, w := range rows {
			if w.rounds != 0 && round >= w.rounds {
				continue
			}
			s, err := o.step(w, round)
			if err != nil {
				return nil, err
			}
			switch {
			case !o.wants(s.name):
			case w.rounds == 0:
				these = append(these, s)
			default:
				rest = append(rest, s)
			}
		}
		r.Shuffle(len(these), func(i, j int) { these[i], these[j] = these[j], these[i] })
		mixed = append(mixed, these...)
	}
	for _, p := range peers.All() {
		name := "peer/" + p.Name + "/1"
		if o.wants(name) {
			rest = append(rest, step{name, 1, func(ctx context.Context) (record.Result, error) {
				return p.Run(ctx, peers.Options{Python: o.python, Root: root})
			}})
		}
	}
	if len(mixed)+len(rest) == 0 {
		return nil, fmt.Errorf("nothing is called %q; names are scenario/backend/sessions, as exec/runner/100", o.only)
	}
	return append(mixed, rest...), nil
}

func (o options) step(w row, round int) (step, error) {
	s, err := scenario.Find(w.scenario)
	if err != nil {
		return step{}, err
	}
	setup := w.o
	setup.Python, setup.Plant, setup.Seed = o.python, o.plant, o.seed+uint64(round)
	resolved, err := s.Check(setup)
	if err != nil {
		return step{}, err
	}
	name := fmt.Sprintf("%s/%s/%d", s.Name, resolved.Backend, resolved.Sessions)
	return step{name, round + 1, func(ctx context.Context) (record.Result, error) { return s.Run(ctx, setup) }}, nil
}

func (o options) wants(name string) bool {
	if o.only == "" {
		return true
	}
	for word := range strings.SplitSeq(o.only, ",") {
		if word != "" && strings.Contains(name, word) {
			return true
		}
	}
	return false
}
