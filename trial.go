package coppice

import (
	"context"
	"errors"
	"time"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/environment"
	"github.com/coppice-run/coppice/messages"
)

// Trial lets [environment.Doctor] try hosts of this package: it is what
// environment.DoctorOptions.Trial takes. It holds nothing; any goroutine may use
// it.
type Trial struct{}

var _ environment.Trial = Trial{}

// trialOptions turns settings into options.
func trialOptions(s environment.Settings) (Options, error) {
	b, err := backendOf(s)
	o := Options{Brand: s.Brand, Home: s.Home, Python: s.Python, Env: s.Env, Backend: b, StartTimeout: s.StartTimeout}
	if s.Cage != nil {
		o.Isolation = Isolation{Level: IsolationStrongest, Write: s.Cage.Write, Read: s.Cage.Read}
	}
	return o, err
}

// Plan says which backend a host with these settings would run on, and how many
// kernels would wait for sessions. The error matches [ErrOptions].
func (Trial) Plan(s environment.Settings, problem error) (environment.Plan, error) {
	o, err := trialOptions(s)
	if err != nil {
		return environment.Plan{}, err
	}
	r, err := o.resolve()
	if err != nil {
		return environment.Plan{}, err
	}
	chosen, err := r.wouldChoose(context.Background(), func(context.Context) (*environment.Runtime, error) {
		if errors.As(problem, new(*environment.NoPythonError)) {
			return nil, problem
		}
		return &environment.Runtime{}, problem
	})
	if err != nil {
		return environment.Plan{}, err
	}
	p := environment.Plan{Why: chosen.why, Warm: r.warming()}
	if chosen.able {
		p.Backend = chosen.Name()
	}
	return p, nil
}

// Run starts a host with these settings, runs a cell and shuts the host down. The
// error is that of [Start].
func (Trial) Run(ctx context.Context, s environment.Settings, c environment.Cell) (environment.Tried, error) {
	o, err := trialOptions(s)
	if err != nil {
		return environment.Tried{}, err
	}
	h, err := Start(ctx, o)
	if err != nil {
		return environment.Tried{}, err
	}
	t := environment.Tried{}
	t.Level, _ = h.Isolation()
	began := time.Now()
	result, err := h.Session(c.Session+"-"+messages.NewID(), In(c.Cwd)).Execute(ctx, Request{
		Cells: []messages.Cell{{Code: c.Code}}, Mode: messages.ModePerCall, Timeout: c.Timeout,
	})
	if refused, ok := errors.AsType[*messages.NotStartedError](err); ok && refused.Refusal == messages.RefusedStart {
		err = nil // the result says why there is no kernel
	}
	t.Took, t.Err, t.OK, t.Text = time.Since(began), err, result.Outcome == messages.OutcomeOK, result.Text
	if len(result.JSON) > 0 {
		t.JSON = result.JSON[0]
	}
	if _, ok := can[kernel.Forker](h); ok && ctx.Err() == nil {
		t.Forks, t.NoFork, t.ForksErr = h.Forks(ctx)
	}
	for _, l := range h.Shutdown(ctx).Leftovers {
		t.Left = append(t.Left, environment.Left{Path: l.Path, Reason: l.Exit.Reason})
	}
	return t, nil
}
