package coppice

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/actors/kernel/jupyter"
	"github.com/coppice-run/coppice/actors/kernel/runner"
	"github.com/coppice-run/coppice/internal/home"
)

// provisioners are the backends that the options allow, the preferred one first.
func (r resolved) provisioners() []kernel.Provisioner {
	g := jupyter.Provision(jupyter.HostOptions{
		URL: r.GatewayURL, Token: r.GatewayToken, KernelName: r.KernelName, Shared: r.SharedGateway != nil, Idle: r.GatewayIdle, Kernels: r.GatewayKernels, WarmKernels: r.WarmKernels,
	})
	n := runner.Provision(runner.HostOptions{NoFork: r.NoFork, Spares: r.Spares})
	switch r.Backend {
	case BackendGateway:
		return []kernel.Provisioner{g}
	case BackendRunner:
		return []kernel.Provisioner{n}
	default:
		return []kernel.Provisioner{g, n}
	}
}

// site is what the host says of itself to its backend.
func (h *Host) site() kernel.Site {
	mime := ""
	if !h.o.NoHelpers {
		mime = "application/x-" + h.o.Brand + "-status"
	}
	return kernel.Site{
		Dir: h.o.dir, Python: h.o.Python, Env: h.o.Env, StatusMIME: mime, Modules: h.modulesCode, MaxSessions: h.o.MaxSessions, IdleTTL: h.o.IdleTTL,
		HostCalls: h.o.hostCalls(), Limits: h.o.Limits, Isolation: h.o.Isolation, Keep: h.o.KeepSessions, Trace: h.trace, SkipCheck: h.o.skipCheck(),
		StartTimeout: serverStarts * h.o.startTimeout(),
	}
}

// serverStarts is how many starts of a kernel the process may take that they come
// from: who gives it up has to begin at nothing, and each kernel that waits for it
// has a limit of its own.
const serverStarts = 2

func (r resolved) startTimeout() time.Duration { return cmp.Or(r.StartTimeout, time.Minute) }

// choose returns the first backend that is available, and why it is this one. Of
// the last it is the first call that says what is missing.
func choose(ctx context.Context, all []kernel.Provisioner, site *kernel.Site) (p kernel.Provisioner, why string, err error) {
	if len(all) == 1 {
		return all[0], "it was asked for", nil
	}
	var missing error
	for i, p := range all {
		why, err := p.Available(ctx, site)
		switch {
		case ctx.Err() != nil:
			return nil, "", fmt.Errorf("choose a backend: %w", context.Cause(ctx))
		case err == nil && missing != nil:
			return p, missing.Error(), nil
		case err == nil, i == len(all)-1:
			return p, why, nil
		}
		missing = errors.Join(missing, err)
	}
	return nil, "", fmt.Errorf("%w: no backend was named", ErrOptions)
}

// can returns what the host's backend can do beyond making kernels; false: it cannot.
func can[T any](h *Host) (T, bool) {
	able, ok := h.backend.(T)
	return able, ok
}

// Backend returns the name of the backend that the host's calls run on, and why it is
// this one.
func (h *Host) Backend() (name, why string) { return h.backend.Name(), h.why }

// Spares returns how many sessions were made ahead and wait to be taken, 0 with a
// backend that makes none.
func (h *Host) Spares() int {
	if b, ok := can[kernel.Sparer](h); ok {
		return b.Spares()
	}
	return 0
}

// Forks reports whether the host's sessions are forked from a warm interpreter,
// which takes milliseconds, and if not, why. It waits while the fork server starts;
// the error is why it could not.
func (h *Host) Forks(ctx context.Context) (forks bool, why string, err error) {
	if b, ok := can[kernel.Forker](h); ok {
		return b.Forks(ctx)
	}
	return false, h.cannot("copies no kernels: it starts each"), nil
}

// ControlGroups returns the controllers (memory, pids, cpu) of the control groups
// that the host's sessions have, none when they have no group, and why those are
// not there that Options.Limits could use: such limits are then kept to by each
// process of a session for itself. It waits while the fork server starts; the error
// is why it could not.
func (h *Host) ControlGroups(ctx context.Context) (controllers []string, why string, err error) {
	if b, ok := can[kernel.Limiter](h); ok {
		return b.Groups(ctx)
	}
	return nil, h.cannot("has no limits that want control groups"), nil
}

// Isolation returns the rung that the host's sessions are on, and what it does, in
// words.
func (h *Host) Isolation() (level, description string) {
	if b, ok := can[kernel.Isolator](h); ok {
		return b.Isolation()
	}
	return kernel.IsolationOff, "the host's own rights: " + h.cannot("does not isolate its kernels")
}

// cannot says in a clause what the backend does not do.
func (h *Host) cannot(what string) string { return "the " + h.backend.Name() + " backend " + what }

// skipCheck says whether the interpreter's packages are taken for granted.
func (r resolved) skipCheck() bool { return home.SwitchedOn(r.Env, "PI_PYTHON_SKIP_CHECK") }

// warming says how many kernels of the gateway backend wait for new sessions.
func (r resolved) warming() string {
	return jupyter.Warming(jupyter.HostOptions{URL: r.GatewayURL, WarmKernels: r.WarmKernels}, kernel.Site{Env: r.Env, MaxSessions: r.MaxSessions})
}
