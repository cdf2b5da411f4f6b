package coppice

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/environment"
	"github.com/coppice-run/coppice/messages"
)

// EnvReport says what a host with the same Options would use.
type EnvReport struct {
	environment.Folders
	// Backend is what calls would run on, "" when nothing can; BackendWhy says
	// why.
	Backend    string `json:"backend"`
	BackendWhy string `json:"backend_why"`
	// GatewayURL is the external server, if one is set.
	GatewayURL string `json:"gateway_url,omitempty"`
	environment.Interpreter
}

// Environment says what a host with these options would use: what
// [environment.Look] finds, and the backend. Nothing is started but the
// interpreters that are tried. cwd is a session's working directory, "" that of
// this process: a host has one interpreter for all its sessions, and the report says
// when cwd holds another. The error is only for invalid options, for a working
// directory that cannot be used, or for the end of ctx; a missing Python is part of
// the report.
func Environment(ctx context.Context, o Options, cwd string) (EnvReport, error) {
	r, err := o.resolve()
	if err != nil {
		return EnvReport{}, err
	}
	if cwd, err = cleanCwd(cwd); err != nil {
		return EnvReport{}, err
	}
	seen, err := environment.Look(ctx, r.environment(), cwd)
	report := EnvReport{Folders: seen.Folders, Interpreter: seen.Interpreter, GatewayURL: r.remoteURL()}
	if err != nil {
		return report, err
	}
	chosen, err := r.wouldChoose(ctx, func(context.Context) (*environment.Runtime, error) { return seen.Python, seen.Err() })
	if err != nil {
		return report, err
	}
	if report.BackendWhy = chosen.why; chosen.able {
		report.Backend = chosen.Name()
	}
	return report, nil
}

// environment are the options that say which Python is meant.
func (r resolved) environment() environment.Options {
	return environment.Options{Brand: r.Brand, Home: r.Home, Python: r.Python, Env: r.Env}
}

// wouldChoose is the choice of a host with these options that has found this.
func (r resolved) wouldChoose(ctx context.Context, look func(context.Context) (*environment.Runtime, error)) (choice, error) {
	return choose(ctx, r.Backend, &kernel.Site{Dir: r.dir, Python: r.Python, Env: r.Env, SkipCheck: r.skipCheck(), Looker: look})
}

// warming says how many kernels wait for new sessions, "" where none ever does.
func (r resolved) warming() string {
	if w, ok := r.Backend.(kernel.Warmer); ok {
		s := kernel.Site{Env: r.Env}
		s.MaxSessions = r.sessions(r.Backend, s)
		return w.Warming(s)
	}
	return ""
}

// remoteURL is the server that the user named, "" where the host starts its own.
func (r resolved) remoteURL() string {
	if b, ok := r.Backend.(kernel.Remote); ok {
		return b.RemoteURL()
	}
	return ""
}

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
		o.Isolation = Isolation{Level: kernel.IsolationStrongest, Write: s.Cage.Write, Read: s.Cage.Read}
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

// CheckPython says whether sessions can run, as far as that can be known without starting one:
// whether the interpreter runs and has what the backend needs, or whether the external gateway
// answers and accepts the token. The error matches [ErrNoPython] and names the next step. Success
// is remembered; with COPPICE_PYTHON_SKIP_CHECK in Options.Env nothing is checked. Any goroutine
// may call it.
func (h *Host) CheckPython(ctx context.Context) error {
	if h.o.skipCheck() {
		return nil
	}
	h.preflight.mu.Lock()
	defer h.preflight.mu.Unlock()
	switch {
	case h.preflight.well:
		return nil
	case h.preflight.bad != nil && time.Since(h.preflight.at) < preflightAgain:
		return h.preflight.bad
	}
	if err := h.checkPython(ctx); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("check Python: %w", context.Cause(ctx))
		}
		h.preflight.bad, h.preflight.at = fmt.Errorf("%w: %w", ErrNoPython, err), time.Now()
		return h.preflight.bad
	}
	h.preflight.well = true
	return nil
}

func (h *Host) checkPython(ctx context.Context) error {
	if b, ok := can[kernel.Checker](h); ok {
		return b.Check(ctx)
	}
	return nil
}

// PassedOver returns virtual environments that take precedence but cannot be used, so that
// another interpreter is; each says why. If the host has not run them itself, as with a Backend
// that was named, it is what can be seen without running them. It is nil when the interpreter was
// named, or is that of an external gateway.
func (h *Host) PassedOver() []environment.Step {
	switch {
	case h.o.Python != "" || h.o.remoteURL() != "":
		return nil
	case h.found == nil:
		return environment.PassedOver(h.o.environment())
	}
	return environment.Broken(h.found.Steps)
}

// Helpers lists the functions that every session has, by category and name. It is
// empty with [Options.NoHelpers].
func (h *Host) Helpers() []environment.Helper {
	if h.o.NoHelpers {
		return nil
	}
	return environment.Helpers()
}

// HelpersIn lists the functions that a session in a working directory has: those of
// [Host.Helpers], followed by those of the user's modules. cwd "" is that of this process. An
// interpreter reads the modules without running them; the list is kept, and made again when one
// of them has changed. The returned modules are all of them, in the order in which they are
// loaded.
//
// The error says why the modules could not be read; the list then has the other functions.
func (h *Host) HelpersIn(ctx context.Context, cwd string) (helpers []environment.Helper, modules []environment.Module, err error) {
	helpers = h.Helpers()
	if cwd, err = cleanCwd(cwd); err != nil || !h.o.modules() {
		return helpers, nil, err
	}
	found, modules, err := environment.ModuleHelpers(ctx, h.o.environment(), cwd)
	return append(helpers, found...), modules, err
}

// modules says whether sessions load the user's modules.
func (r resolved) modules() bool { return !r.NoModules && !r.NoHelpers }

// modulesCode is what a new session in a working directory runs after the prelude.
// The files are read for each, so that a reset finds them as they are now.
func (h *Host) modulesCode(cwd string) string {
	if !h.o.modules() {
		return ""
	}
	modules, err := environment.Modules(h.o.environment(), cwd)
	code := ""
	if err == nil {
		code, err = environment.ModulesCode(modules)
	}
	if err != nil {
		h.o.Logger.Warn("modules are left out", "err", err)
		return ""
	}
	return code
}
