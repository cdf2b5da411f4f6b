package scenario

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/coppice-run/coppice/bench/load"
	"github.com/coppice-run/coppice/bench/record"
	"github.com/coppice-run/coppice/test/backends"
)

// Fake is the backend of package bench/fake, beside those of package coppice.
const Fake = "fake"

// Scenario is one way to load a host.
type Scenario struct {
	Name string
	// About is one line for people.
	About string
	// Backends are those it runs on, the first one is the default.
	Backends []string
	// Sessions, Rate and Duration are what a Setup gets that does not say, by
	// backend.
	Defaults map[string]Defaults
	run      func(context.Context, *round) error
}

// Defaults are the numbers of one scenario on one backend.
type Defaults struct {
	// Sessions is how many live at once.
	Sessions int
	// Rate is the calls in a second, of all sessions together.
	Rate float64
	// Duration is how long the load lasts.
	Duration time.Duration
}

// Setup says how to run a scenario. The zero value of a field is its default.
type Setup struct {
	// Backend is gateway, runner or fake. "": the scenario's first.
	Backend string
	// Python is the interpreter. "": the one that coppice.Options finds.
	Python string
	// GatewayURL and GatewayToken are a server that someone else runs, for the
	// gateway backend. "": the host starts one.
	GatewayURL, GatewayToken string
	// Home is where the host keeps its files. "": a temporary folder.
	Home string
	// Sessions, Rate and Duration: see Defaults.
	Sessions int
	Rate     float64
	Duration time.Duration
	// Seed makes the arrival times. 0: 1.
	Seed uint64
	// Plant slows every call down by this share of what it took, to see whether a
	// comparison finds it. 0: not at all.
	Plant float64
	// Progress hears what happens, in short lines, from several goroutines. nil:
	// it is not called.
	Progress func(text string)
}

// ErrSetup is matched by errors about a Setup.
var ErrSetup = errors.New("invalid benchmark")

// All lists the scenarios in the order in which a report shows them.
func All() []Scenario {
	return []Scenario{
		create, ready, execute, idle, churn, burst, chatty, flood, prints, crashy, evict, interrupt, fork, asleep, sleepers, hostCalls, rungs, mixed, soak,
	}
}

// Find returns the scenario with this name. The error matches ErrSetup and lists
// the names.
func Find(name string) (Scenario, error) {
	names := make([]string, 0, len(All()))
	for _, s := range All() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Scenario{}, fmt.Errorf("%w: there is no scenario %q; there are %v", ErrSetup, name, names)
}

// resolve fills in the defaults.
func (s Scenario) resolve(o Setup) (Setup, error) {
	o.Backend = cmp.Or(o.Backend, s.Backends[0])
	if !slices.Contains(s.Backends, o.Backend) {
		return o, fmt.Errorf("%w: scenario %s does not run on backend %q, only on %v", ErrSetup, s.Name, o.Backend, s.Backends)
	}
	d := s.Defaults[o.Backend]
	o.Sessions, o.Rate, o.Duration, o.Seed = cmp.Or(o.Sessions, d.Sessions), cmp.Or(o.Rate, d.Rate), cmp.Or(o.Duration, d.Duration), cmp.Or(o.Seed, 1)
	switch {
	case o.Sessions < 1:
		return o, fmt.Errorf("%w: %d sessions: at least one is needed", ErrSetup, o.Sessions)
	case o.Backend == backends.Gateway && o.Sessions > maxKernels:
		return o, fmt.Errorf("%w: %d sessions are more than the %d kernels that one Kernel Gateway holds; use the runner backend", ErrSetup, o.Sessions, maxKernels)
	case o.Rate < 0 || o.Duration < 0 || o.Plant < 0:
		return o, fmt.Errorf("%w: a negative rate, duration or plant", ErrSetup)
	case math.IsNaN(o.Rate) || math.IsNaN(o.Plant) || o.Rate*o.Duration.Seconds() > maxCalls:
		return o, fmt.Errorf("%w: %g calls a second for %v are more than the %g calls that fit into a run", ErrSetup, o.Rate, o.Duration, maxCalls)
	}
	return o, nil
}

// maxCalls bounds the plan of a run, which is in memory before it begins.
const maxCalls = 1e8

// maxKernels is the limit of coppice.Options.MaxSessions with the gateway backend.
const maxKernels = 150

// Check returns the error that Run would return at once, which matches ErrSetup,
// and the Setup with its defaults.
func (s Scenario) Check(o Setup) (Setup, error) { return s.resolve(o) }

// Run runs one round. The error says what went wrong; the result then holds what
// was measured before, and the error's text.
func (s Scenario) Run(ctx context.Context, o Setup) (record.Result, error) {
	r := record.Result{Scenario: s.Name, At: time.Now(), Curves: map[string]load.Summary{}}
	o, err := s.resolve(o)
	r.Backend, r.Sessions = o.Backend, o.Sessions
	if err != nil {
		r.Error = err.Error()
		return r, err
	}
	one := &round{Setup: o, result: &r}
	r.LoadBefore = record.Load()
	err = s.run(ctx, one)
	err = errors.Join(err, one.end())
	if err == nil && one.wrongs.n > 0 {
		err = fmt.Errorf("%d calls went wrong; the first: %s", one.wrongs.n, one.wrongs.first)
	}
	if ctx.Err() != nil {
		err = errors.Join(context.Cause(ctx), err)
	}
	r.LoadAfter = record.Load()
	r.Took = time.Since(r.At)
	if err != nil {
		err = fmt.Errorf("%s: %w", r.Name(), err)
		r.Error = err.Error()
	}
	return r, err
}

// round is one Run.
type round struct {
	Setup
	result *record.Result
	hosts  []host
	// started is how many sessions live has started.
	started int

	wrongs wrongs
}

// wrongs counts calls that were answered wrongly.
type wrongs struct {
	mu    sync.Mutex
	n     int    // guarded by mu
	first string // guarded by mu
}

func (w *wrongs) add(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.n++; w.n == 1 {
		w.first = text
	}
}

func (r *round) tell(format string, args ...any) {
	if r.Progress != nil {
		r.Progress(fmt.Sprintf(format, args...))
	}
}

func (r *round) metric(name, unit string, value float64, better record.Better) {
	r.result.Metrics = append(r.result.Metrics, record.Metric{Name: name, Unit: unit, Value: value, Better: better})
}

func (r *round) note(format string, args ...any) {
	r.result.Notes = append(r.result.Notes, fmt.Sprintf(format, args...))
}

// quantiles adds the percentiles of a distribution, in microseconds.
func (r *round) quantiles(prefix string, s load.Summary) {
	if prefix != "" {
		prefix += "-"
	}
	us := func(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
	r.metric(prefix+"p50", "us", us(s.P50), record.Less)
	r.metric(prefix+"p99", "us", us(s.P99), record.Less)
	r.result.Curves[prefix+"latency"] = s
}

// sample adds what a load came to.
func (r *round) sample(s load.Sample) {
	r.quantiles("", s.Latency)
	r.metric("rate", "1/s", s.Rate(), record.None)
	r.metric("calls", "", float64(s.Latency.Count), record.None)
	r.metric("late-p99", "us", float64(s.Late.P99.Microseconds()), record.None)
	if s.Failed > 0 {
		r.wrongs.add(fmt.Sprintf("%d of them: %s", s.Failed, s.First))
	}
	if s.Late.P99 > 10*time.Millisecond && s.Late.P99 > s.Latency.P99/4 {
		r.note("the generator itself was %v late (p99): the machine had no time for it, and the latencies contain that", s.Late.P99.Round(time.Millisecond))
	}
}

// counter returns a function for load.Run's done that tells how far it is.
func (r *round) counter(what string, all int) func() {
	var mu sync.Mutex
	n, told := 0, time.Now()
	return func() {
		mu.Lock()
		defer mu.Unlock()
		if n++; n == all || time.Since(told) > 200*time.Millisecond {
			told = time.Now()
			r.tell("%s: %d of %d", what, n, all)
		}
	}
}
