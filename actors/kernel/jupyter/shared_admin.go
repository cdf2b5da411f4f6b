package jupyter

import (
	"context"
	"errors"
	"fmt"

	"github.com/coppice-run/coppice/internal/home"
	"github.com/coppice-run/coppice/internal/pyenv"
	"github.com/coppice-run/coppice/internal/sharedgateway"
)

// ErrOptions is matched by errors about what the caller has asked for.
var ErrOptions = errors.New("invalid options")

// SharedStatus is what can be seen of one shared gateway.
type SharedStatus = sharedgateway.Status

// SharedRunning is the state of a gateway that answers.
const SharedRunning = sharedgateway.StateRunning

// LookShared lists the shared gateways in a home folder (~/.<brand>). It changes
// nothing and waits for no lock; a gateway that does not answer takes it 2 s. Any
// goroutine may call it.
func LookShared(ctx context.Context, home string) ([]SharedStatus, error) {
	return sharedgateway.Look(ctx, sharedgateway.DirIn(home))
}

// StartShared finds or starts the first shared gateway of an interpreter, and tells
// of all of them. It stays for IdleEnd, or for as long as it is used. Of o it takes what
// says which interpreter, IdleEnd and ShardKernels.
//
// The error matches [ErrOptions] when an external server is set, in o or in the
// variables of o.Env: nothing is started beside it.
func StartShared(ctx context.Context, o ServerOptions) ([]SharedStatus, error) {
	filled, err := provisioner{HostOptions{URL: o.URL, Idle: o.IdleEnd, Kernels: o.ShardKernels}}.fill(o.Env)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	case filled.o.URL != "":
		return nil, fmt.Errorf("%w: an external gateway is set (%s); nothing is started beside it", ErrOptions, home.Name(o.Env, urlVariable))
	}
	rt, err := pyenv.Resolve(ctx, pyenv.Options{Python: o.Python, Home: o.Home, Env: o.Env})
	if err != nil {
		return nil, err
	}
	lease, err := sharedgateway.Acquire(ctx, sharedgateway.Options{
		Dir: sharedgateway.DirIn(o.Home), Runtime: rt, Check: check(rt), Start: o.Start, IdleEnd: o.IdleEnd, MaxKernels: filled.o.Kernels,
	})
	if err != nil {
		return nil, err
	}
	lease.Release()
	return LookShared(ctx, o.Home)
}

// StopShared ends all shared gateways in a home folder, with their kernels, and returns
// what was ended. Sessions that are kept in them are lost; hosts that use one hear of
// it and start another when they need it. ctx bounds the wait for other processes that
// start or stop one.
func StopShared(ctx context.Context, home string) ([]SharedStatus, error) {
	return sharedgateway.Stop(ctx, sharedgateway.DirIn(home))
}
