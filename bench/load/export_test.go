package load

import "context"

// Virtual is Run for the virtual time of testing/synctest, which the kernel's
// timers do not know.
var Virtual = func(ctx context.Context, plan Plan, call func(ctx context.Context, i int) error, done func()) Sample {
	return run(ctx, plan, call, done, nil)
}
