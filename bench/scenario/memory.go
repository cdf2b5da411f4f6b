package scenario

import (
	"fmt"

	"github.com/coppice-run/coppice/bench/record"
)

// processMemory adds the memory of the sessions' processes, each with its part of
// what they share.
func (r *round) processMemory(p pids) error {
	var all int64
	for _, pid := range p.kernels {
		all += proportional(pid)
	}
	if all == 0 || len(p.kernels) == 0 {
		return nil // pretended, or on a system that does not tell
	}
	if len(p.kernels) != r.Sessions {
		return fmt.Errorf("%d of %d sessions have a process", len(p.kernels), r.Sessions)
	}
	r.metric("process-memory", "KiB/session", float64(all)/1024/float64(len(p.kernels)), record.Less)
	return nil
}
