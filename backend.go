package coppice

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/actors/kernel/jupyter"
	"github.com/coppice-run/coppice/actors/kernel/runner"
	"github.com/coppice-run/coppice/environment"
)

type (
	// Backend is where kernels come from, as a value: which kind, with its options. It
	// is immutable, and several hosts may have the same one. [Gateway], [Runner] and
	// [Auto] make one; a package with a [kernel.Provisioner] of its own adds another.
	Backend = kernel.Provisioner
	// Kernelspec is a kind of kernel that a session may have, see [Host.Kernelspecs].
	Kernelspec = kernel.Kernelspec
	// GatewayOptions are those of [Gateway]. The zero value of each field is its
	// default.
	GatewayOptions = jupyter.HostOptions
	// RunnerOptions are those of [Runner]. The zero value of each field is its default.
	RunnerOptions = runner.HostOptions
)

// Gateway is the backend of Jupyter kernels behind a Kernel Gateway, which the host
// starts, shares with others, or is given: any kernel with a kernelspec, reached by
// the Jupyter messaging protocol.
func Gateway(o GatewayOptions) Backend { return jupyter.Provision(o) }

// Runner is the backend of Python interpreters that the host runs itself. It needs
// nothing but Python 3.9 or newer, starts a session in milliseconds, and can fork,
// limit and isolate sessions.
func Runner(o RunnerOptions) Backend { return runner.Provision(o) }

// Auto is the first of several backends that is available where the host starts, else
// the last, whose first call then says what is missing. Without any it is the gateway,
// then the runner, with their defaults. [Host.Backend] tells which it was, and why.
func Auto(of ...Backend) Backend {
	if len(of) == 0 {
		of = []Backend{Gateway(GatewayOptions{}), Runner(RunnerOptions{})}
	}
	return auto(slices.Clone(of))
}

// BackendNamed is the backend that a flag or a setting names: gateway, runner, or auto
// ("" too), which takes the gateway when it is available. The error names what is
// wrong: another name, or a kernelspec for the runner, which has only Python.
func BackendNamed(name string, g GatewayOptions, r RunnerOptions) (Backend, error) {
	switch name {
	case "", nameAuto:
		return Auto(Gateway(g), Runner(r)), nil
	case jupyter.Name:
		return Gateway(g), nil
	case runner.Name:
		if g.KernelName != "" {
			return nil, fmt.Errorf("%w: the runner backend has no kernel called %q: it has only Python; use the gateway backend", ErrOptions, g.KernelName)
		}
		return Runner(r), nil
	}
	return nil, fmt.Errorf("%w: the backend %q is not one of auto, gateway, runner", ErrOptions, name)
}

// auto is the first of some backends that is available.
type auto []Backend

// nameAuto is the name of a choice that has not been made.
const nameAuto = "auto"

// Name returns "auto": the backend that is chosen has a name of its own.
func (auto) Name() string { return nameAuto }

// Available says why the backend that is chosen can be used.
func (a auto) Available(ctx context.Context, s *kernel.Site) (string, error) {
	c, err := choose(ctx, a, s)
	switch {
	case err != nil:
		return "", err
	case !c.able:
		return "", errors.New(c.why)
	}
	return c.why, nil
}

// Provision makes the backend that is chosen.
func (a auto) Provision(s kernel.Site) (kernel.Backend, error) {
	c, err := choose(context.Background(), a, &s)
	if err != nil {
		return nil, err
	}
	return c.Provision(s)
}

// FromEnvironment fills in each.
func (a auto) FromEnvironment(env []string) (Backend, error) {
	filled := slices.Clone(a)
	for i, b := range a {
		if c, ok := b.(kernel.Configurable); ok {
			var err error
			if filled[i], err = c.FromEnvironment(env); err != nil {
				return nil, err
			}
		}
	}
	return filled, nil
}

// Validate refuses what each would refuse.
func (a auto) Validate() error {
	for _, b := range a {
		if b == nil {
			return errors.New("Auto was given a nil backend; leave it out")
		}
		if v, ok := b.(kernel.Validator); ok {
			if err := v.Validate(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Warming is that of the first backend that starts kernels ahead.
func (a auto) Warming(s kernel.Site) string {
	for _, b := range a {
		if w, ok := b.(kernel.Warmer); ok {
			return w.Warming(s)
		}
	}
	return ""
}

// Sessions is what the first bears that says so: a host asks the backend that was
// chosen.
func (a auto) Sessions(s kernel.Site) int {
	for _, b := range a {
		if n, ok := b.(kernel.Sizer); ok {
			return n.Sessions(s)
		}
	}
	return 0
}

// RemoteURL is that of the first backend that has one.
func (a auto) RemoteURL() string {
	for _, b := range a {
		if r, ok := b.(kernel.Remote); ok && r.RemoteURL() != "" {
			return r.RemoteURL()
		}
	}
	return ""
}

// choice is a backend, and why it is this one.
type choice struct {
	kernel.Provisioner
	why string
	// able says that it can be used, as far as is known: a host takes it in any case,
	// and its first call says what is missing.
	able bool
}

// choose returns the backend; of several, the first that is available, else the
// last. It is the only place where that is decided: [Start], [Environment] and [Trial]
// ask it.
func choose(ctx context.Context, b Backend, site *kernel.Site) (choice, error) {
	several, ok := b.(auto)
	if !ok {
		return choice{b, "it was asked for", true}, nil
	}
	c := choice{}
	for _, p := range several {
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
	return c, nil
}

// can returns what the host's backend can do beyond making kernels; false: it cannot.
func can[T any](h *Host) (T, bool) {
	able, ok := h.backend.(T)
	return able, ok
}

// Backend returns the name of the backend that the host's calls run on, and why it is
// this one.
func (h *Host) Backend() (name, why string) { return h.backend.Name(), h.why }

// Kernelspecs returns the kinds of kernels that sessions may name by [OnKernel]; the first is for
// sessions that name none. With [Options.Beside] it has those of both backends. It waits while
// the process that kernels come from starts; the error is why they are not known. Any goroutine
// may call it.
func (h *Host) Kernelspecs(ctx context.Context) ([]Kernelspec, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	return h.kernels.Kernelspecs(ctx)
}

// Spares returns how many sessions were made ahead and are ready to be taken; 0 with a backend
// that makes none.
func (h *Host) Spares() int {
	if b, ok := can[kernel.Sparer](h); ok {
		return b.Spares()
	}
	return 0
}

// Keeps reports whether sessions outlive the host with Options.KeepSessions: the backend must be
// able to do it, and its server must belong to one of this user's hosts, not to someone else
// (GatewayOptions.URL). With the runner backend it says whether they would now: the process that
// keeps them may have been ended.
func (h *Host) Keeps() bool {
	if heir, is := can[kernel.Heir](h); is {
		kept, _ := heir.Kept()
		return kept
	}
	_, able := can[kernel.Keeper](h)
	r, is := h.o.Backend.(kernel.Remote)
	return able && (!is || r.RemoteURL() == "")
}

// Forks reports whether the host's sessions are forked from a warm interpreter, which takes
// milliseconds, and if not, why. It waits while the fork server starts; the error is why that
// failed.
func (h *Host) Forks(ctx context.Context) (forks bool, why string, err error) {
	if b, ok := can[kernel.Forker](h); ok {
		return b.Forks(ctx)
	}
	return false, h.cannot("copies no kernels: it starts each"), nil
}

// ControlGroups returns the controllers (memory, pids, cpu) of the control groups that the host's
// sessions have, or none, and why any that Options.Limits could use are missing. Each process of
// a session then keeps to such limits by itself. It waits while the fork server starts; the error
// is why that failed.
func (h *Host) ControlGroups(ctx context.Context) (controllers []string, why string, err error) {
	if b, ok := can[kernel.Limiter](h); ok {
		return b.Groups(ctx)
	}
	return nil, h.cannot("has no limits that want control groups"), nil
}

// Isolation returns the rung that the host's sessions are on, and describes it.
func (h *Host) Isolation() (level, description string) {
	if b, ok := can[kernel.Isolator](h); ok {
		return b.Isolation()
	}
	return kernel.IsolationOff, "the host's own rights: " + h.cannot("does not isolate its kernels")
}

// cannot says in a clause what the backend does not do.
func (h *Host) cannot(what string) string { return "the " + h.backend.Name() + " backend " + what }

// backendOf is the backend that settings name.
func backendOf(s environment.Settings) (Backend, error) {
	return BackendNamed(s.Backend, GatewayOptions{URL: s.GatewayURL, Token: s.GatewayToken, KernelName: s.KernelName}, RunnerOptions{})
}
