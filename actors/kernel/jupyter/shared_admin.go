package jupyter

import (
	"context"

	"github.com/coppice-run/coppice/internal/pyenv"
	"github.com/coppice-run/coppice/internal/sharedgateway"
)

// SharedStatus is what can be seen of one shared gateway.
type SharedStatus = sharedgateway.Status

// LookShared tells of the shared gateways in a home folder (~/.<brand>).
func LookShared(ctx context.Context, home string) ([]SharedStatus, error) {
	return sharedgateway.Look(ctx, sharedgateway.DirIn(home))
}

// StartShared finds or starts the first shared gateway of an interpreter, and tells
// of all of them. Of o it takes what says which interpreter, IdleEnd and ShardKernels.
func StartShared(ctx context.Context, o ServerOptions) ([]SharedStatus, error) {
	rt, err := pyenv.Resolve(ctx, pyenv.Options{Python: o.Python, Home: o.Home, Env: o.Env})
	if err != nil {
		return nil, err
	}
	lease, err := sharedgateway.Acquire(ctx, sharedgateway.Options{
		Dir: sharedgateway.DirIn(o.Home), Runtime: rt, Check: check(rt), StartTimeout: o.StartTimeout, IdleEnd: o.IdleEnd, MaxKernels: o.ShardKernels,
	})
	if err != nil {
		return nil, err
	}
	lease.Release()
	return LookShared(ctx, o.Home)
}

// StopShared ends the shared gateways in a home folder, with their kernels.
func StopShared(ctx context.Context, home string) ([]SharedStatus, error) {
	return sharedgateway.Stop(ctx, sharedgateway.DirIn(home))
}
