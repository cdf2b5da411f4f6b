package opportunity

import (
	"context"
	"time"

	"github.com/coppice-run/coppice/internal/process"
)

// killed is how long processes that were killed have the chance to end: the system needs
// nothing but a processor for that, and a disk where it waits for one.
var killed = Budget{Opportunity: 5 * time.Second, Ceiling: 2 * time.Minute}

// KillAll is [process.KillAll] for as long as the processes have had the chance to end. What
// it has begun it ends, also when ctx ends meanwhile.
func KillAll(ctx context.Context, ids []process.Identity) []process.Identity {
	bound, done := Within(context.WithoutCancel(ctx), killed, Processes(ids...))
	defer done()
	return process.KillAll(bound, ids)
}
