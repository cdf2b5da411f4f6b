package launcher

import (
	"context"

	"github.com/coppice-run/coppice/supervisor"
)

// New returns the actor of a launcher, for tests that have no processes.
func New(o Options) supervisor.Behaviour { return newActor(o.WithDefaults()) }

// What the actor is spoken to with, and what stands for a process.
type (
	Plan    = plan
	Process = process
	Reply   = reply
	Launch  = launch
	Prewarm = prewarm
	Logs    = logs
)

// DirOf is the folder of tools of a launcher that does not run yet.
func DirOf(c *Child) string { return c.box.Dir() }

// ErrOver is errOver.
var ErrOver = errOver

// Hearing is hearing.
func Hearing[E, R any](ctx context.Context, hear func(E) error, work func(ctx context.Context, tell func(E) error) R) R {
	return hearing(ctx, hear, work)
}
