package runner

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/coppice-run/coppice/internal/ndjson"
	"github.com/coppice-run/coppice/messages"
)

// hostCalls are the calls of the host's functions that one cell has made.
type hostCalls struct {
	mu      sync.Mutex
	cancels map[uint64]context.CancelFunc // guarded by mu: those that run
}

// hostCall serves one call in a goroutine of its own, which ends with the call,
// at the latest a moment after its cell has. Close joins it.
func (c *cell) hostCall(ctx context.Context, f ndjson.Frame) {
	ctx, cancel := context.WithCancel(ctx)
	c.calls.mu.Lock()
	if c.calls.cancels == nil {
		c.calls.cancels = map[uint64]context.CancelFunc{}
	}
	c.calls.cancels[f.Call] = cancel
	c.calls.mu.Unlock()
	c.i.logged().Called(f.Call, c.mark())
	call := messages.HostCall{Kind: messages.HostCallKind(f.Kind), Name: f.Name, Args: f.Args}
	serve := c.serve
	c.i.hosting.Go(func() {
		defer c.hostCancel(f.Call)
		result := messages.HostResult{Error: &messages.HostError{Type: "HostCallError", Message: "this session has no host functions"}}
		if serve != nil {
			result = serve(ctx, call)
		}
		c.i.answerCall(f.Call, result)
	})
}

// hostCancel ends a call: its code gave it up, or it is over.
func (c *cell) hostCancel(call uint64) {
	c.calls.mu.Lock()
	defer c.calls.mu.Unlock()
	if cancel := c.calls.cancels[call]; cancel != nil {
		cancel()
		delete(c.calls.cancels, call)
	}
}

// answerCall writes the answer to a host call. It is written whole whatever
// becomes of the cell, since half a line would spoil the next; when the session
// is gone it fails at once.
func (i *Interpreter) answerCall(call uint64, r messages.HostResult) {
	line := ndjson.AppendHostResult(nil, call, r)
	i.writing <- struct{}{}
	defer func() { <-i.writing }()
	if i.child.Control.SetWriteDeadline(time.Time{}) == nil {
		i.trace(sent, "control", line)
		_ = i.sending.write(i.child.Control, line) // it is not missed when the session is gone
		i.logged().Returned(call)
	}
}

// joinCalls waits for the goroutines of host calls: their cell is over, and what
// they still write fails.
func (i *Interpreter) joinCalls(ctx context.Context) error {
	joined := make(chan struct{})
	go func() { // ends with the last of them
		i.hosting.Wait()
		close(joined)
	}()
	select {
	case <-joined:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the end of host calls: %w", context.Cause(ctx))
	}
}
