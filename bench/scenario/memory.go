package scenario

import (
	"context"
	"fmt"

	"github.com/coppice-run/coppice/bench/record"
	"github.com/coppice-run/coppice/messages"
)

// processMemory adds the memory of the sessions' processes, each with its part of
// what they share.
func (r *round) processMemory(ctx context.Context, h host) error {
	node, err := h.Snapshot(ctx)
	if err != nil {
		return err
	}
	var pids []int
	var walk func(messages.Node)
	walk = func(n messages.Node) {
		if n.Kind == "kernel" && n.PID != 0 {
			pids = append(pids, n.PID)
		}
		for _, c := range n.Children {
			walk(c)
		}
	}
	walk(node)
	var all int64
	for _, pid := range pids {
		all += proportional(pid)
	}
	if all == 0 || len(pids) == 0 {
		return nil // pretended, or on a system that does not tell
	}
	if len(pids) != r.Sessions {
		return fmt.Errorf("%d of %d sessions have a process", len(pids), r.Sessions)
	}
	r.metric("process-memory", "KiB/session", float64(all)/1024/float64(len(pids)), record.Less)
	return nil
}
