package sinks_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks"
)

// gate is a sink that takes an event only on request.
func gate() (*probe, chan struct{}) {
	open := make(chan struct{})
	return &probe{consume: func(ctx context.Context, _ int, _ messages.Event) error {
		select {
		case <-open:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}}, open
}

func TestEmitWaitsForCredit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := start(t, sinks.HubOptions{})
		slow, open := gate()
		c := h.open(t, "a", sinks.Subscription{Sink: slow, Credit: 300})
		emitted := 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range 10 {
				if c.Emit(t.Context(), out(fmt.Sprintf("%036d", i))) != nil { // 100 bytes
					return
				}
				emitted++
			}
		}()
		synctest.Wait()
		require.Equal(t, 3, emitted, "what is on its way is bounded by the credit")
		require.EqualValues(t, 300, c.InUse(1))
		open <- struct{}{}
		synctest.Wait()
		require.Equal(t, 4, emitted)
		close(open)
		<-done
		c.Flush(t.Context())
		require.Len(t, slow.texts(), 10)
		require.EqualValues(t, 0, c.InUse(0))
		require.EqualValues(t, 0, c.InUse(1))
		slow.ok(t)
	})
}

func TestEmitGivesUpWithTheCause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := start(t, sinks.HubOptions{})
		first := &probe{}
		slow, open := gate()
		c := h.open(t, "a", first, sinks.Subscription{Sink: slow, Credit: 1})
		require.NoError(t, c.Emit(t.Context(), out("1")), "an event larger than the credit is not refused")
		cause := errors.New("the caller left")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, cause)
		defer cancel()
		require.ErrorIs(t, c.Emit(ctx, out("given up")), cause)
		require.EqualValues(t, 0, c.InUse(1), "what was taken for the others was given back")
		close(open)
		require.NoError(t, c.Emit(t.Context(), out("2")))
		require.Equal(t, "12", c.Flush(t.Context()).Cells[0].Text)
		require.Equal(t, []string{"1:1", "2:2"}, first.texts(), "the numbers have no gap, and no sink saw what was given up")
		require.Equal(t, []string{"1:1", "2:2"}, slow.texts())
	})
}

// After Hurry, a slow sink costs no time: it goes without output, and a notice says so.
func TestHurry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := start(t, sinks.HubOptions{})
		fast := &probe{}
		slow, open := gate()
		ch := sinks.NewChannel(200)
		c := h.open(t, "a", fast, sinks.Subscription{Sink: slow, Credit: 200}, ch)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range 10 {
				_ = c.Emit(t.Context(), out(fmt.Sprintf("%036d", i))) // 100 bytes
			}
			_ = c.Emit(t.Context(), messages.Status{Status: messages.CellComplete})
		}()
		synctest.Wait()
		require.Len(t, fast.texts(), 2, "the slow ones hold the call back")
		begin := time.Now()
		c.Hurry()
		<-done
		require.Len(t, c.Flush(t.Context()).Cells[0].Text, 360, "the result has everything")
		require.LessOrEqual(t, time.Since(begin), 500*time.Millisecond)
		require.Len(t, fast.texts(), 10)
		require.EqualValues(t, 0, c.Reports()[1].Dropped)
		require.EqualValues(t, 8, c.Reports()[2].Dropped)
		require.EqualValues(t, 8, c.Reports()[3].Dropped)
		close(open)
		c.Flush(t.Context())
		c.Close()
		var pulled []messages.Event
		for e := range ch.Events() {
			pulled = append(pulled, e)
		}
		for _, events := range [][]messages.Event{slow.events, pulled} {
			require.Len(t, events, 4)
			require.Equal(t, sinks.NoticeSkipped, events[2].(messages.Notice).Code)
			require.Equal(t, messages.CellComplete, events[3].(messages.Status).Status, "how it ended is reported all the same")
		}
	})
}

func TestLossySubscriptionDropsAndCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := start(t, sinks.HubOptions{})
		slow, open := gate()
		c := h.open(t, "a", sinks.Subscription{Sink: slow, Credit: 250, Lossy: true})
		for i := range 10 {
			require.NoError(t, c.Emit(t.Context(), out(fmt.Sprintf("%036d", i))))
		}
		begin := time.Now()
		require.Len(t, c.Flush(t.Context()).Cells[0].Text, 360, "the result has everything")
		require.Equal(t, 250*time.Millisecond, time.Since(begin), "a lossy sink does not hold the end of the call back for long")
		require.EqualValues(t, 8, c.Reports()[1].Dropped)
		close(open)
		c.Flush(t.Context())
		require.Len(t, slow.texts(), 2)
	})
}

// stalls is a process that stands still for an hour, from a second after it began.
type stalls struct{ begun time.Time }

func (s stalls) Stalled() time.Duration {
	return max(0, min(time.Since(s.begun)-time.Second, time.Hour))
}

// A sink is a part of this process: what that stands still is not held against it.
func TestFlushDoesNotCountOurOwnStall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := start(t, sinks.HubOptions{})
		slow, open := gate()
		c := h.open(t, "a", slow)
		require.NoError(t, c.Emit(t.Context(), out("x")))
		begin := time.Now()
		c.StallWith(stalls{begin})
		time.AfterFunc(time.Hour+5*time.Second, func() { close(open) })
		require.Equal(t, "x", c.Flush(t.Context()).Cells[0].Text)
		require.Equal(t, time.Hour+5*time.Second, time.Since(begin))
		require.Equal(t, []string{"1:x"}, slow.texts(), "it had its time")

		never, free := gate()
		c = h.open(t, "b", never)
		require.NoError(t, c.Emit(t.Context(), out("x")))
		begin = time.Now()
		c.StallWith(stalls{begin})
		c.Flush(t.Context())
		require.InDelta(t, time.Hour+10*time.Second, time.Since(begin), float64(time.Second))
		close(free)
	})
}

func TestFlushGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := start(t, sinks.HubOptions{})
		slow, open := gate()
		c := h.open(t, "a", slow)
		require.NoError(t, c.Emit(t.Context(), out("x")))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		o := c.Flush(ctx)
		require.Equal(t, "x", o.Cells[0].Text, "another sink that is late does not cost the result")
		require.Empty(t, o.Lost)
		close(open)
		c.Flush(t.Context())
		require.Equal(t, []string{"1:x"}, slow.texts(), "it was still on its way")

		never, free := gate()
		c = h.open(t, "c", never)
		require.NoError(t, c.Emit(t.Context(), out("x")))
		begin := time.Now()
		require.Equal(t, "x", c.Flush(t.Context()).Cells[0].Text)
		require.Equal(t, 10*time.Second, time.Since(begin), "no other sink holds the result back for long")
		close(free)

		stuck, free := gate()
		r := h.open(t, "b")
		r.Sabotage(stuck)
		require.NoError(t, r.Emit(t.Context(), out("x")))
		ctx, cancel = context.WithTimeoutCause(t.Context(), time.Second, errors.New("no time left"))
		defer cancel()
		require.Equal(t, "the result sink did not finish: no time left", r.Flush(ctx).Lost)
		close(free)
	})
}
