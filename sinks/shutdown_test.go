package sinks_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks"
	"github.com/coppice-run/coppice/supervisor"
)

// TestShutdownEndsOpenCalls: sinks of calls that were not closed are flushed and
// closed, and Emit does not hang afterwards.
func TestShutdownEndsOpenCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared, own := &probe{}, &probe{}
		h := start(t, sinks.HubOptions{Sinks: []sinks.Attachment{{Name: "all", For: func(context.Context, messages.Execute) sinks.Sink { return shared }}}})
		c := h.open(t, "a", sinks.Subscription{Sink: own, Credit: 100})
		c.Flush(t.Context()) // a tree that drains starts no new actors
		require.NoError(t, c.Emit(t.Context(), out("x")))
		require.True(t, h.system.Shutdown(t.Context()).Clean())
		for _, p := range []*probe{shared, own} {
			require.Equal(t, []string{"1:x"}, p.texts())
			flushes, closes := p.counts()
			require.Equal(t, []int{2, 1}, []int{flushes, closes})
			p.ok(t)
		}
		for range 10 {
			require.NoError(t, c.Emit(t.Context(), out("y")))
		}
		require.NotEmpty(t, c.Flush(t.Context()).Lost)
		_, err := h.Open(t.Context(), exec("b"))
		require.ErrorIs(t, err, sinks.ErrClosed)
		c.Close()
		require.Zero(t, h.Singles())
	})
}

// TestShutdownWaitsForASlowSink: a sink that is in the middle of something gets
// a last chance.
func TestShutdownWaitsForASlowSink(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := start(t, sinks.HubOptions{})
		slow, gone := &probe{}, &probe{}
		wait := func(d time.Duration) func(context.Context, int, messages.Event) error {
			return func(ctx context.Context, _ int, _ messages.Event) error {
				select {
				case <-time.After(d):
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
		}
		slow.consume, gone.consume = wait(900*time.Millisecond), wait(time.Hour)
		c := h.open(t, "a", slow, gone)
		for range 3 {
			require.NoError(t, c.Emit(t.Context(), out("x")))
		}
		synctest.Wait()
		begin := time.Now()
		require.True(t, h.system.Shutdown(t.Context()).Clean())
		require.Equal(t, []string{"1:x", "2:x", "3:x"}, slow.texts())
		require.Empty(t, gone.texts())
		require.Less(t, time.Since(begin), 5*time.Second)
		require.EqualValues(t, 3, c.Reports()[2].Lost)
		slow.ok(t)
		gone.ok(t)
	})
}

// talker is a child that ends after the drain of the sinks has begun, and emits
// while it does.
type talker struct {
	call *sinks.Call
	out  chan messages.Output
}

func (talker) Init(*supervisor.Ctx) error { return nil }

func (talker) Handle(*supervisor.Ctx, any) error { return nil }

func (k talker) Terminate(*supervisor.Ctx, supervisor.Exit) {
	_ = k.call.Emit(context.Background(), out("last words"))
	k.out <- k.call.Flush(context.Background())
	k.call.Close()
}

func TestCallsThatEndInTheShutdownKeepTheirOutput(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := &talker{out: make(chan messages.Output, 1)}
		h := start(t, sinks.HubOptions{}, supervisor.Spec{Key: "gateway", New: func() supervisor.Behaviour { return k }})
		p := &probe{}
		k.call = h.open(t, "a", p)
		require.NoError(t, k.call.Emit(t.Context(), out("first words, ")))
		k.call.Flush(t.Context())
		require.True(t, h.system.Shutdown(t.Context()).Clean())
		o := <-k.out
		require.Equal(t, "first words, last words", o.Cells[0].Text)
		require.Empty(t, o.Lost)
		require.Equal(t, []string{"1:first words, ", "2:last words"}, p.texts())
	})
}
