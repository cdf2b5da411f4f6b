package coppice

import (
	"context"

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
