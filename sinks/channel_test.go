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

func TestChannelHoldsTheCallBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := start(t, sinks.HubOptions{})
		ch := sinks.NewChannel(300)
		c := h.open(t, "a", ch)
		emitted := 0
		go func() {
			for i := range 10 {
				if c.Emit(t.Context(), out(fmt.Sprintf("%036d", i))) == nil {
					emitted++
				}
			}
			c.Flush(t.Context())
			c.Close()
		}()
		synctest.Wait()
		require.Equal(t, 3, emitted)
		var seqs []uint64
		for e := range ch.Events() {
			seqs = append(seqs, e.Pos().Seq)
		}
		require.Equal(t, []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, seqs, "Close ends the events, after the last")
		require.Equal(t, sinks.SinkReport{Name: "sink"}, c.Reports()[1])
	})
}

// TestConsumerThatLeaves: the loop's end frees a producer that waits.
func TestConsumerThatLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := start(t, sinks.HubOptions{})
		ch := sinks.NewChannel(100)
		c := h.open(t, "a", sinks.Subscription{Sink: ch, Name: "stream"})
		done := make(chan error, 1)
		go func() {
			var err error
			for range 10 {
				err = errors.Join(err, c.Emit(t.Context(), out("x")))
			}
			done <- err
		}()
		for range ch.Events() {
			break
		}
		require.NoError(t, <-done)
		require.Equal(t, "xxxxxxxxxx", c.Flush(t.Context()).Cells[0].Text)
		require.Equal(t, sinks.ErrConsumerGone, c.Reports()[1].Err)
		require.ErrorIs(t, ch.Consume(t.Context(), out("x")), sinks.ErrConsumerGone)
	})
}

func TestChannelWithoutACall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ch := sinks.NewChannel(0)
		taken := make(chan int)
		go func() {
			n := 0
			for range ch.Events() {
				n++
			}
			taken <- n
		}()
		synctest.Wait()
		ch.Finish()
		require.Zero(t, <-taken, "a call that was refused ends its stream")

		left := sinks.NewChannel(0)
		left.Leave()
		for range left.Events() {
			t.Error("an event from nowhere")
		}
	})
}

func TestChannelGivesUpAndDrops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := start(t, sinks.HubOptions{})
		lossless, lossy := sinks.NewChannel(1), sinks.NewChannel(1)
		c := h.open(t, "a", lossless, sinks.Subscription{Sink: lossy, Lossy: true})
		require.NoError(t, c.Emit(t.Context(), out("1")))
		cause := errors.New("cause")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
		defer cancel()
		require.ErrorIs(t, c.Emit(ctx, out("2")), cause)
		next := func(ch *sinks.Channel) (e messages.Event) {
			for e = range ch.Events() {
				return e
			}
			return nil
		}
		require.EqualValues(t, 1, next(lossless).Pos().Seq)
		require.NoError(t, c.Emit(t.Context(), out("3")))
		require.EqualValues(t, 1, c.Reports()[2].Dropped)
		require.Equal(t, "13", c.Flush(t.Context()).Cells[0].Text)
	})
}
