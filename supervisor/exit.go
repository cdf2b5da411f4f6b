package supervisor

import "github.com/coppice-run/coppice/supervisor/strategy"

// Exit is why an incarnation of a child ended, or failed: an error, and the
// cause of [Ctx.Context]. Strategies decide by it, so it stands in their
// package; whoever implements a [Behaviour]
// need not know them.
type Exit = strategy.Exit
