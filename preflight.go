package coppice

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/environment"
)

// preflight keeps that Python was found well: a failure is looked at again.
type preflight struct {
	mu   sync.Mutex // held while it is checked: who asks meanwhile gets the same answer
	well bool       // guarded by mu
	// bad is why it was not, as of at: who lists tools may ask often.
	bad error     // guarded by mu
	at  time.Time // guarded by mu
}

// preflightAgain is after how long a failure is looked at again.
const preflightAgain = 5 * time.Second

// ErrNoPython is matched by the error of [Host.CheckPython].
var ErrNoPython = errors.New("python is not available")

// CheckPython says whether sessions can run, as far as that can be known without
// starting one: the interpreter runs and has what the backend needs, or the
// external gateway answers and takes the token. The error matches [ErrNoPython] and
// names the next step. Success is remembered; with PI_PYTHON_SKIP_CHECK in
// Options.Env nothing is looked at. Any goroutine may call it.
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

// PassedOver returns the virtual environments that come first and cannot be used,
// so that another interpreter is: each says why. Where the host has not run them
// itself, as with a Backend that was named, it is what shows without that. It is nil
// when the interpreter was named, or is that of an external gateway.
func (h *Host) PassedOver() []environment.Step {
	switch {
	case h.o.Python != "" || h.o.remoteURL() != "":
		return nil
	case h.found == nil:
		return environment.PassedOver(h.o.environment())
	}
	return environment.Broken(h.found.Steps)
}
