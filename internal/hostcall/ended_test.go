package hostcall_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/agent/primitive"
	"github.com/coppice-run/coppice/internal/hostcall"
	"github.com/coppice-run/coppice/messages"
)

// ender is a backend that is notified of the end of calls.
type ender func(context.Context, primitive.CallEnd) error

func (e ender) OnCallEnd(ctx context.Context, end primitive.CallEnd) error { return e(ctx, end) }

// TestABackendThatHangsHoldsNoResult: not for longer than a bounded time, whether it
// heeds its context or not; and no other backend.
func TestABackendThatHangsHoldsNoResult(t *testing.T) {
	free := make(chan struct{})
	for name, row := range map[string]struct {
		backend ender
		within  time.Duration // that the context of the caller lasts; 0: it has no end
		most    time.Duration
		notice  string
	}{
		"well":              {func(context.Context, primitive.CallEnd) error { return nil }, 0, 0, ""},
		"it fails":          {func(context.Context, primitive.CallEnd) error { return errors.New("the disk is full") }, 0, 0, "runtime.bad: the disk is full"},
		"it panics":         {func(context.Context, primitive.CallEnd) error { panic("secret") }, 0, 0, "runtime.bad: its backend failed inside (panicked)"},
		"heeds its context": {func(ctx context.Context, _ primitive.CallEnd) error { <-ctx.Done(); return ctx.Err() }, 0, 10 * time.Second, "runtime.bad: context deadline exceeded"},
		"the caller leaves": {func(ctx context.Context, _ primitive.CallEnd) error { <-ctx.Done(); return ctx.Err() }, time.Second, 3 * time.Second, "runtime.bad: context canceled"},
		"heeds nothing":     {func(context.Context, primitive.CallEnd) error { <-free; return nil }, 0, 11 * time.Second, `the backend "bad" does not answer`},
		"and none waits":    {func(context.Context, primitive.CallEnd) error { <-free; return nil }, time.Second, 4 * time.Second, `the backend "bad" does not answer`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				free = make(chan struct{})
				r := primitive.New()
				heard := ender(func(_ context.Context, end primitive.CallEnd) error {
					end.Emit("heard", end.Outcome)
					return nil
				})
				require.NoError(t, r.Install(primitive.Pack{Name: "bad", Backend: row.backend}, false))
				require.NoError(t, r.Install(primitive.Pack{Name: "good", Backend: heard}, false))
				h := host(hostcall.Options{})
				c := h.Calls(exec, hostcall.Offer{Primitives: r})
				ctx, cancel := context.WithCancel(t.Context())
				if row.within > 0 {
					ctx, cancel = context.WithTimeout(t.Context(), row.within)
				}
				defer cancel()
				begin := time.Now()
				var events []messages.HostEvent
				notices := c.Ended(ctx, messages.OutcomeOK, func(e messages.HostEvent) { events = append(events, e) })
				require.LessOrEqual(t, time.Since(begin), row.most)
				require.Equal(t, []messages.HostEvent{{Name: "heard", Data: messages.RawJSON(`"ok"`)}}, events)
				if row.notice == "" {
					require.Empty(t, notices)
				} else {
					require.Len(t, notices, 1)
					require.Contains(t, notices[0], row.notice)
				}
				close(free)
				require.Empty(t, h.Wait(t.Context()))
			})
		})
	}
}
