//go:build !linux

package toolproc

import (
	"context"

	"github.com/coppice-run/coppice/internal/process"
)

// keeper does nothing here: see the guarantees of the package.
type keeper struct{}

var theKeeper keeper

func (*keeper) watch(string, string, process.Identity) {}

func (*keeper) forget(string) {}

// sweep ends what was known of when the tool was asked to end.
func sweep(ctx context.Context, _ string, known []process.Identity) {
	if len(known) > 0 {
		process.KillAll(ctx, known)
	}
}
