package jupyter

import (
	"context"
	"errors"
	"fmt"

	"github.com/coppice-run/coppice/messages"
)

// Left is an execution that another client has left, with [ExecuteRequest.Keep].
type Left struct {
	// Request is its id, as [ExecuteRequest.Announce] had it.
	Request string
	// Seen is the number of the last message about it whose output was taken.
	Seen int64
	// Comms is that of the request.
	Comms bool
}

// Attach is [Client.Adopt] for a kernel in which another client has left an execution, whether it
// has begun, runs or has ended: it returns when the kernel answers on its control channel, also
// while code runs, and [Kernel.Resume] goes on with the execution. The kernel numbers what it sends
// ([Kernel.EnableReplay]).
//
// The connection takes the place of the earlier one, in its session, as when one is dialled
// again: the answers to the execution come on it.
func (c *Client) Attach(ctx context.Context, id string, l Left, stage func(string)) (*Kernel, error) {
	session, n, ok := numberOf(l.Request)
	if !ok || l.Seen < 0 {
		return nil, fmt.Errorf("attach to an execution: %q is not the id of a request", l.Request)
	}
	x := c.newExecution(l.Request, typeExecuteReply)
	x.comms, x.keeps, x.left, x.sent, x.numbered, x.breaks = l.Comms, true, true, true, true, 1
	x.noted, x.cursor.next, x.cursor.high = l.Seen, l.Seen+1, l.Seen
	x.recovery.confirmed, x.recovery.want, x.recovery.broke = l.Seen, true, true
	if l.Seen > 0 {
		x.run()
	}
	x.before = uint64(n) //nolint:gosec // it is not negative
	k, err := c.adopt(ctx, id, stage, connection{session: session, left: x})
	if err != nil {
		x.spool.Close()
		return nil, err
	}
	return k, nil
}

// Resume is [Kernel.Execute] for the execution that [Client.Attach] has found: it hands over what
// comes after what was taken, and returns how it has ended. A question that waits for an answer is
// handed over again. An execution that the kernel never got is sent, as r.
func (k *Kernel) Resume(ctx context.Context, r ExecuteRequest, emit func(context.Context, messages.Event) error) (ExecuteReply, error) {
	k.mu.Lock()
	x := k.left
	k.left = nil
	k.mu.Unlock()
	if x == nil {
		return k.Execute(ctx, r, emit)
	}
	reply, err := k.see(ctx, x, r.Placed, emit)
	if errors.Is(err, errUnheard) {
		return k.Execute(ctx, r, emit)
	}
	return reply, err
}
