package coppice

import (
	"context"
	"errors"

	"github.com/coppice-run/coppice/environment"
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
	report := EnvReport{Folders: seen.Folders, Interpreter: seen.Interpreter, GatewayURL: r.GatewayURL}
	if err != nil {
		return report, err
	}
	report.Backend, report.BackendWhy = r.chooseBackend(seen.Err)
	return report, nil
}

// environment are the options that say which Python is meant.
func (r resolved) environment() environment.Options {
	return environment.Options{Brand: r.Brand, Home: r.Home, Python: r.Python, Env: r.Env}
}

// chooseBackend names the backend of a host and says why it is this one; "" when
// nothing can run. problem says why no Kernel Gateway can be started, nil when one
// can; it is asked only where nothing else decides. Nothing else chooses.
func (r resolved) chooseBackend(problem func() error) (name, why string) {
	switch {
	case r.Backend != BackendAuto:
		return r.Backend, "it was asked for"
	case r.GatewayURL != "":
		return BackendGateway, "an external gateway is set"
	case r.KernelName != "":
		return BackendGateway, "a kernel was named"
	case r.skipCheck():
		return BackendGateway, skipWhy
	}
	err := problem()
	switch {
	case err == nil:
		return BackendGateway, "jupyter_kernel_gateway or jupyter_server, and ipykernel, are importable"
	case errors.As(err, new(*environment.MissingPackagesError)):
		return BackendRunner, "the gateway's packages are missing; coppice setup installs them"
	default:
		return "", "no Python interpreter can be used"
	}
}
