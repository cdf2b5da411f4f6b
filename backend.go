package coppice

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/actors/kernel/jupyter"
	"github.com/coppice-run/coppice/actors/kernel/runner"
	"github.com/coppice-run/coppice/environment"
	"github.com/coppice-run/coppice/internal/home"
	"github.com/coppice-run/coppice/messages"
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
		mime = messages.StatusMIME(h.o.Brand)
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

// choice is a backend, and why it is this one.
type choice struct {
	kernel.Provisioner
	why string
	// able says that it can be used, as far as is known: a host takes it in any case,
	// and its first call says what is missing.
	able bool
}

// choose returns the first backend that is available, else the last. It is the only
// place where that is decided: [Start], [Environment] and [Trial] ask it.
func choose(ctx context.Context, all []kernel.Provisioner, site *kernel.Site) (choice, error) {
	if len(all) == 1 {
		return choice{all[0], "it was asked for", true}, nil
	}
	c := choice{}
	for _, p := range all {
		why, err := p.Available(ctx, site)
		switch {
		case ctx.Err() != nil:
			return c, fmt.Errorf("choose a backend: %w", context.Cause(ctx))
		case err == nil && c.why != "": // why it is not the one before
			return choice{p, c.why, true}, nil
		case err == nil:
			return choice{p, why, true}, nil
		}
		c = choice{p, err.Error(), false}
	}
	if c.Provisioner == nil {
		return c, fmt.Errorf("%w: no backend was named", ErrOptions)
	}
	return c, nil
}

// wouldChoose is the choice of a host with these options that has found this.
func (r resolved) wouldChoose(ctx context.Context, look func(context.Context) (*environment.Runtime, error)) (choice, error) {
	return choose(ctx, r.provisioners(), &kernel.Site{Dir: r.dir, Python: r.Python, Env: r.Env, SkipCheck: r.skipCheck(), Looker: look})
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
