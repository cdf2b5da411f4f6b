package coppice

import (
	"context"
	"errors"
	"fmt"

	"github.com/coppice-run/coppice/actors/kernel/jupyter"
	"github.com/coppice-run/coppice/actors/python"
)

// SetupOptions says which Python environment to build.
type SetupOptions struct {
	// Brand and Home are as in Options: the environment is
	// <Home>/.<Brand>/python-env.
	Brand, Home string
	// Dir is the environment itself, in place of one in Home.
	Dir string
	// Python is the interpreter to build with. "": python3, then python, on
	// PATH.
	Python string
	// Env is the environment in which pip runs, with its settings for index,
	// proxy and certificates. nil: that of this process.
	Env []string
	// Progress hears what is done. It is called from one goroutine at a time
	// and must not block. nil: nobody.
	Progress func(SetupStage)
}

type (
	// SetupStage is one report of progress.
	SetupStage = python.Stage
	// SetupResult describes an environment.
	SetupResult = python.SetupResult
)

// Setup builds the managed Python environment that the gateway backend runs in
// when a session has no virtual environment of its own: pinned versions of
// jupyter_kernel_gateway and ipykernel, checked by hash. When it is there
// already, Setup returns in a fraction of a second. It may be interrupted and
// run again; runs at the same time wait for each other.
func Setup(ctx context.Context, o SetupOptions) (SetupResult, error) {
	so, err := o.resolve()
	if err != nil {
		return SetupResult{}, err
	}
	return python.Setup(ctx, so)
}

// CheckSetup says what Setup would find, and changes nothing.
func CheckSetup(ctx context.Context, o SetupOptions) (SetupResult, error) {
	so, err := o.resolve()
	if err != nil {
		return SetupResult{}, err
	}
	return python.Check(ctx, so)
}

func (o SetupOptions) resolve() (python.SetupOptions, error) {
	r, err := Options{Brand: o.Brand, Home: o.Home, Env: o.Env}.resolve()
	if err != nil {
		return python.SetupOptions{}, err
	}
	return python.SetupOptions{Home: r.dir, Dir: o.Dir, Python: o.Python, Env: r.Env, Progress: o.Progress}, nil
}

// EnvReport says what a host with the same Options would use.
type EnvReport struct {
	// Brand, Home and Dir are the names of folders: Dir is <Home>/.<Brand>.
	Brand string `json:"brand"`
	Home  string `json:"home"`
	Dir   string `json:"dir"`
	// Backend is what calls would run on, "" when nothing can; BackendWhy says
	// why.
	Backend    string `json:"backend"`
	BackendWhy string `json:"backend_why"`
	// GatewayURL is the external server, if one is set.
	GatewayURL string `json:"gateway_url,omitempty"`
	// Python is the interpreter that was chosen, nil when none can be used;
	// Problem then says why.
	Python  *python.Runtime `json:"python"`
	Problem string          `json:"problem,omitempty"`
	// Steps are the places where an interpreter was looked for, in order.
	Steps []python.Step `json:"steps"`
	// Packages are those that the gateway backend needs.
	Packages []python.Package `json:"packages"`
	// Passed and Withheld are the names of the variables of the environment
	// that kernels see and do not see.
	Passed   []string `json:"passed"`
	Withheld []string `json:"withheld"`
}

// Environment says what a host with these options would use, without starting
// anything but the interpreters that it tries. cwd is the session's working
// directory, "" that of this process. The error is only for invalid options or
// the end of ctx; a missing Python is part of the report.
func Environment(ctx context.Context, o Options, cwd string) (EnvReport, error) {
	r, err := o.resolve()
	if err != nil {
		return EnvReport{}, err
	}
	if cwd, err = cleanCwd(cwd); err != nil {
		return EnvReport{}, err
	}
	report := EnvReport{Brand: r.Brand, Home: r.Home, Dir: r.dir, GatewayURL: r.GatewayURL}
	report.Passed, report.Withheld = split(r.Env)
	rt, err := python.Resolve(ctx, python.Options{Python: r.Python, Cwd: cwd, Home: r.dir, Env: r.Env})
	report.Steps = rt.Steps
	if err == nil {
		report.Python = &rt
		report.Packages, err = python.Preflight(ctx, rt)
	}
	if ctx.Err() != nil {
		return report, fmt.Errorf("look at the environment: %w", context.Cause(ctx))
	}
	if err != nil {
		report.Problem = err.Error()
	}
	var missing *python.MissingPackagesError
	switch {
	case r.Backend != BackendAuto:
		report.Backend, report.BackendWhy = r.Backend, "it was asked for"
	case r.GatewayURL != "":
		report.Backend, report.BackendWhy = BackendGateway, "an external gateway is set"
	case r.KernelName != "":
		report.Backend, report.BackendWhy = BackendGateway, "a kernel was named"
	case r.skipCheck():
		report.Backend, report.BackendWhy = BackendGateway, jupyter.SkipWhy
	case err == nil:
		report.Backend, report.BackendWhy = BackendGateway, "jupyter_kernel_gateway or jupyter_server, and ipykernel, are importable"
	case errors.As(err, &missing):
		report.Backend, report.BackendWhy = BackendRunner, "the gateway's packages are missing; coppice setup installs them"
	default:
		report.BackendWhy = "no Python interpreter can be used"
	}
	return report, nil
}

// split returns the names of the variables that pass the filter, and of those
// that do not.
func split(env []string) (passed, withheld []string) {
	keep := map[string]bool{}
	for _, kv := range python.Filter(env) {
		keep[name(kv)] = true
	}
	for _, kv := range env {
		if n := name(kv); keep[n] {
			passed = append(passed, n)
		} else if n != "" {
			withheld = append(withheld, n)
		}
	}
	return passed, withheld
}

func name(kv string) string {
	for i := 1; i < len(kv); i++ { // from 1: names of Windows may begin with =
		if kv[i] == '=' {
			return kv[:i]
		}
	}
	return kv
}
