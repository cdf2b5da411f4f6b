package strategy_test

import (
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// indexed is a view with an index that a test writes down: what it says, and what it was asked.
type indexed struct {
	view
	census strategy.Census
	since  *time.Time
}

func (i indexed) Index() strategy.Index                         { return i }
func (i indexed) Census(string, string, uint64) strategy.Census { return i.census }
func (i indexed) Idle() iter.Seq[strategy.ChildView]            { return i.only(messages.ChildIdle) }

func (i indexed) Failed() iter.Seq[strategy.ChildView] { return i.only(messages.ChildFailed) }

func (i indexed) Silent(then time.Time) iter.Seq[strategy.ChildView] {
	*i.since = then
	return i.Children()
}

func (i indexed) only(state messages.ChildState) iter.Seq[strategy.ChildView] {
	return func(yield func(strategy.ChildView) bool) {
		for c := range i.Children() {
			if c.State == state && !yield(c) {
				return
			}
		}
	}
}

// A refusal tells of those that were given up and may still be there.
func TestStraysAreTold(t *testing.T) {
	t.Parallel()
	refused := func(strays int) string {
		v := indexed{view: of3(busy("a"), waiting("new", 1)), census: strategy.Census{Live: 2, Strays: strays, Waiting: 1}}
		ds := strategy.LRU(2).Decide(v, strategy.Spawning{Key: "new"})
		require.Equal(t, []string{"stop new overloaded"}, say(ds))
		return ds[0].Exit.Error()
	}
	require.Equal(t, "overloaded: 2 of 2 children, none of them idle", refused(0))
	require.Equal(t, "overloaded: 2 of 2 children, none of them idle, 1 of them not known to be gone", refused(1))
}

// A heartbeat asks the index for those alone that have been silent for long.
func TestHeartbeatAsksForTheSilent(t *testing.T) {
	t.Parallel()
	var since time.Time
	v := indexed{view: of3(idle("a", 0, beat(6*time.Second))), since: &since}
	require.Equal(t, []string{"stop a hung"}, say(strategy.Heartbeat(2*time.Second).Decide(v, strategy.Tick{})))
	require.Equal(t, noon.Add(-5*time.Second), since)
}
