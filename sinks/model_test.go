package sinks_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks"
	"github.com/coppice-run/coppice/supervisor"
)

// misbehaviour is what a sink does with the next event.
type misbehaviour int32

const (
	nothing misbehaviour = iota
	returnError
	panics
	leaves
)

// TestSubscriptionLosesOnlyWhatItSays draws a life of a call whose sinks misbehave, and
// holds: every event was seen once and in order, or is counted as lost; what
// was flushed was handled; a subscription has no credit left out at the end; and the
// result has everything, whatever happened beside it.
func TestSubscriptionLosesOnlyWhatItSays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		hub, err := sinks.NewHub(sinks.HubOptions{Shards: 1})
		require.NoError(t, err)
		system, err := supervisor.Start(context.Background(), supervisor.SystemOptions{Children: []supervisor.Spec{hub.Spec()}})
		require.NoError(t, err)
		defer func() { require.True(t, system.Shutdown(context.Background()).Clean()) }()

		var next atomic.Int32
		var probes []*probe
		make1 := func() sinks.Sink {
			p := &probe{consume: func(context.Context, int, messages.Event) error {
				switch misbehaviour(next.Swap(0)) {
				case returnError:
					return errors.New("drawn")
				case panics:
					panic("drawn")
				case leaves:
					return sinks.ErrConsumerGone
				}
				return nil
			}}
			probes = append(probes, p)
			return p
		}
		subscription := sinks.Subscription{Sink: make1(), Credit: rapid.Int64Range(1, 500).Draw(t, "credit")}
		if rapid.Bool().Draw(t, "again") {
			subscription.Again = make1
		}
		c, err := hub.Open(context.Background(), exec("a"), subscription)
		require.NoError(t, err)
		emitted := uint64(0)
		for range rapid.IntRange(0, 25).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				c.Flush(context.Background()) // so that the misbehaviour meets what comes next
				next.Store(int32(rapid.SampledFrom([]misbehaviour{returnError, panics, leaves}).Draw(t, "misbehaviour")))
			case 1:
				c.Flush(context.Background())
			default:
				for range rapid.IntRange(1, 20).Draw(t, "events") {
					require.NoError(t, c.Emit(context.Background(), out("x")))
					emitted++
				}
			}
		}
		o := c.Flush(context.Background())
		require.Empty(t, o.Lost)
		if emitted > 0 {
			require.Len(t, o.Cells[0].Text, int(emitted))
		}
		report := c.Reports()[1]
		var seen []uint64
		for _, p := range probes {
			p.mu.Lock()
			for _, e := range p.events {
				seen = append(seen, e.Pos().Seq)
			}
			require.Empty(t, p.wrong)
			p.mu.Unlock()
		}
		for i := 1; i < len(seen); i++ {
			require.Less(t, seen[i-1], seen[i], "in order, and none twice")
		}
		if report.Err == nil {
			require.Equal(t, emitted, uint64(len(seen))+report.Lost)
		} else {
			require.LessOrEqual(t, uint64(len(seen))+report.Lost, emitted)
			require.NotZero(t, report.Lost)
		}
		require.Zero(t, c.InUse(0))
		require.Zero(t, c.InUse(1))
		c.Close()
	})
}
