package strategy_test

import (
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

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
	require.Equal(t, "overloaded: 2 of 2 places are taken, and none is idle", refused(0))
	require.Equal(t, "overloaded: 2 of 2 places are taken, and none is idle, 1 of them not known to be gone", refused(1))
}

// A heartbeat asks the index for those alone that have been silent for long.
func TestHeartbeatAsksForTheSilent(t *testing.T) {
	t.Parallel()
	var since time.Time
	v := indexed{view: of3(idle("a", 0, beat(6*time.Second))), since: &since}
	require.Equal(t, []string{"stop a hung"}, say(strategy.Heartbeat(2*time.Second).Decide(v, strategy.Tick{})))
	require.Equal(t, noon.Add(-5*time.Second), since)
}

// whole is a view with an index that does what is said of one, in the plainest way.
type whole struct{ view }

func (w whole) Index() strategy.Index { return w }

func (w whole) Census(kind, owner string, turn uint64) (n strategy.Census) {
	for c := range w.Children() {
		if c.Static || kind != "" && c.Kind != kind || owner != "" && c.Owner != owner {
			continue
		}
		switch {
		case c.State == messages.ChildWaiting && c.Turn <= turn:
			n.Waiting++
		case c.State == messages.ChildStopping:
			n.Ending++
		}
		if c.Live() {
			n.Live++
		}
	}
	return n
}

func (w whole) Idle() iter.Seq[strategy.ChildView] {
	all := slices.Collect(w.dynamic(messages.ChildIdle))
	slices.SortStableFunc(all, func(a, b strategy.ChildView) int { return a.LastDone.Compare(b.LastDone) })
	return slices.Values(all)
}

func (w whole) Failed() iter.Seq[strategy.ChildView] { return w.dynamic(messages.ChildFailed) }

func (w whole) Silent(then time.Time) iter.Seq[strategy.ChildView] {
	return func(yield func(strategy.ChildView) bool) {
		for c := range w.Children() {
			heard := c.HeardAt()
			silent := !heard.IsZero() && heard.Before(then) || !c.HandlingSince.IsZero() && c.HandlingSince.Before(then)
			if c.Live() && silent && !yield(c) {
				return
			}
		}
	}
}

func (w whole) dynamic(state messages.ChildState) iter.Seq[strategy.ChildView] {
	return func(yield func(strategy.ChildView) bool) {
		for c := range w.Children() {
			if c.State == state && !c.Static && !yield(c) {
				return
			}
		}
	}
}

// An index makes a decision faster, and no other one: not in a chain, in which children end as it
// is gone through, nor for children of one kind.
func TestAnIndexDecidesNothing(t *testing.T) {
	t.Parallel()
	states := []messages.ChildState{
		messages.ChildIdle, messages.ChildIdle, messages.ChildIdle, messages.ChildBusy, messages.ChildStarting,
		messages.ChildStopping, messages.ChildWaiting, messages.ChildFailed, messages.ChildSuspended,
	}
	same := func(t *rapid.T) {
		var v view
		for i := range rapid.IntRange(2, 8).Draw(t, "children") {
			c := child(fmt.Sprint("c", i), rapid.SampledFrom(states).Draw(t, "state"), time.Duration(rapid.IntRange(0, 120).Draw(t, "ago"))*time.Second,
				ofKind(rapid.SampledFrom([]string{"", "k", "l"}).Draw(t, "kind")), ofOwner(rapid.SampledFrom([]string{"", "o", "p"}).Draw(t, "owner")))
			c.Static = rapid.IntRange(0, 4).Draw(t, "static") == 0
			c.Queue = rapid.IntRange(0, 1).Draw(t, "queue")
			if heard := rapid.IntRange(0, 20).Draw(t, "heard"); heard > 0 {
				beat(time.Duration(heard) * time.Second)(&c)
			}
			if c.State == messages.ChildBusy {
				inCall(time.Duration(rapid.IntRange(0, 20).Draw(t, "in a call")) * time.Second)(&c)
			}
			if i == 0 {
				c.State, c.Static = messages.ChildWaiting, false
			}
			if c.State == messages.ChildWaiting {
				c.Turn = uint64(i + 1)
			}
			v.children = append(v.children, c)
		}
		one := rapid.Custom(func(t *rapid.T) strategy.Strategy {
			n := rapid.IntRange(1, 4).Draw(t, "n")
			s := rapid.SampledFrom([]strategy.Strategy{
				strategy.LRU(n), strategy.LRUQueue(n, 1), strategy.Quota(n), strategy.IdleTTL(time.Minute), strategy.Hibernating(strategy.LRU(n)), strategy.Heartbeat(time.Duration(n) * time.Second),
			}).Draw(t, "strategy")
			for _, kind := range rapid.SampledFrom([][]string{nil, nil, nil, {"k"}, {"l"}, {"k", "k"}, {"k", "l"}}).Draw(t, "for") {
				s = strategy.For(kind, s)
			}
			return s
		})
		s := strategy.Chain(rapid.SliceOfN(one, 1, 4).Draw(t, "strategies")...)
		var ev strategy.Event = strategy.Tick{}
		if rapid.IntRange(0, 3).Draw(t, "tick") > 0 {
			ev = strategy.Spawning{Key: "c0"}
		}
		require.Equal(t, s.Decide(v, ev), s.Decide(whole{v}, ev))
	}
	rapid.Check(t, func(t *rapid.T) {
		for range 100 { // it takes many for the few that matter
			same(t)
		}
	})
}
