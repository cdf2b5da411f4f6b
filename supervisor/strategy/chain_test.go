package strategy_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// fixed always says the same.
type fixed []strategy.Directive

func (f fixed) Decide(strategy.View, strategy.Event) []strategy.Directive { return f }

func TestChain(t *testing.T) {
	t.Parallel()
	evict := strategy.Exit{Kind: messages.ExitEvicted}
	for _, row := range []struct {
		name string
		all  []strategy.Strategy
		want []string
	}{
		{"nobody", nil, nil},
		{"nil is skipped", []strategy.Strategy{nil, fixed{strategy.Resume("a")}, nil}, []string{"resume a"}},
		{"the most severe counts", []strategy.Strategy{
			fixed{strategy.Restart("a", 0)}, fixed{strategy.Stop("a", evict)}, fixed{strategy.Resume("a")},
		}, []string{"stop a evicted"}},
		{"per key", []strategy.Strategy{
			fixed{strategy.Restart("a", 0), strategy.Stop("b", evict)}, fixed{strategy.Abandon("b", evict), strategy.Wait("c")},
		}, []string{"restart a", "abandon b evicted", "wait c"}},
		{"the longer wait counts", []strategy.Strategy{
			fixed{strategy.Restart("a", time.Second)}, fixed{strategy.Restart("a", time.Minute)}, fixed{strategy.Restart("a", 0)},
		}, []string{"restart a 1m0s"}},
		{"of equals the first counts", []strategy.Strategy{
			fixed{strategy.Stop("a", evict)}, fixed{strategy.Stop("a", failed)},
		}, []string{"stop a evicted"}},
		{"escalate is beside all", []strategy.Strategy{
			fixed{strategy.Stop("a", evict)}, fixed{strategy.Escalate(failed)},
		}, []string{"stop a evicted", "escalate failed"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := strategy.Chain(row.all...).Decide(view{}, strategy.Tick{})
			require.Equal(t, row.want, say(got))
		})
	}
}

// TestChainForesees: two limits do not end two children where one is enough,
// if the narrower one comes first.
func TestChainForesees(t *testing.T) {
	t.Parallel()
	mine := ofOwner("me")
	v := of3(idle("a", 9), idle("b", 1, mine), waiting("x", 1, mine))
	decide(t, strategy.Chain(strategy.Quota(1), strategy.LRU(2)), []decision{
		{"one goes", v, strategy.Spawning{Key: "x"}, []string{"stop b evicted", "wait x"}},
	})
	decide(t, strategy.Chain(strategy.Pin(strategy.Chain(strategy.For("", strategy.Quota(1)))), strategy.For("", strategy.LRU(2))), []decision{
		{"through other views as well", v, strategy.Spawning{Key: "x"}, []string{"stop b evicted", "wait x"}},
	})
	decide(t, strategy.Chain(strategy.IdleTTL(5), strategy.LRU(1)), []decision{
		{"on a tick", of3(idle("a", 9), idle("b", 1)), strategy.Tick{}, []string{"stop a evicted"}},
	})
}

// TestChainForeseesWhatEnds: a strategy counts those as ending that one before it ends, and
// no others.
func TestChainForeseesWhatEnds(t *testing.T) {
	t.Parallel()
	evict := strategy.Exit{Kind: messages.ExitEvicted}
	two, three := of3(idle("a", 9), idle("b", 1)), of3(idle("a", 9), idle("b", 1), idle("c", 5))
	then := func(ds ...strategy.Directive) strategy.Strategy { return strategy.Chain(fixed(ds), strategy.LRU(1)) }
	decide(t, then(strategy.Stop("b", evict)), []decision{
		{"one that is stopped", two, strategy.Tick{}, []string{"stop b evicted"}},
		{"the others are there", three, strategy.Tick{}, []string{"stop b evicted", "stop a evicted"}},
	})
	decide(t, then(strategy.Abandon("b", evict)), []decision{
		{"one that is given up", two, strategy.Tick{}, []string{"abandon b evicted"}},
	})
	decide(t, then(strategy.Resume("c"), strategy.Stop("b", evict)), []decision{
		{"behind one that goes on", two, strategy.Tick{}, []string{"resume c", "stop b evicted"}},
	})
	decide(t, then(strategy.Resume("b")), []decision{
		{"not one that goes on", two, strategy.Tick{}, []string{"resume b", "stop a evicted"}},
	})
}

// TestChainForeseesNoRoomOfAStaticChild: its end makes none, as it took none.
func TestChainForeseesNoRoomOfAStaticChild(t *testing.T) {
	t.Parallel()
	v := of3(idle("s", 9), idle("a", 9), idle("b", 1))
	v.children[0].Static = true
	s := strategy.Chain(fixed([]strategy.Directive{strategy.Stop("s", strategy.Exit{Kind: messages.ExitEvicted})}), strategy.LRU(1))
	for name, view := range map[string]strategy.View{"with an index": whole{v}, "without": v} {
		require.Equal(t, []string{"stop s evicted", "stop a evicted"}, say(s.Decide(view, strategy.Tick{})), name)
	}
}

// TestChainTTL: the first end counts, wherever it comes from.
func TestChainTTL(t *testing.T) {
	t.Parallel()
	ttl := func(all ...strategy.Strategy) time.Time {
		return strategy.Chain(all...).(strategy.TTLs).TTL(of3(idle("a", 0)), "a")
	}
	minute, hour := strategy.IdleTTL(time.Minute), strategy.IdleTTL(time.Hour)
	require.Zero(t, ttl(strategy.LRU(1)))
	require.Equal(t, noon.Add(time.Minute), ttl(strategy.LRU(1), minute), "behind one that has none")
	require.Equal(t, noon.Add(time.Minute), ttl(hour, minute))
	require.Equal(t, noon.Add(time.Minute), ttl(minute, hour))
	require.Equal(t, noon.Add(time.Minute), ttl(minute, strategy.For("fish", minute)), "none is no end")
}

// TestChainIsFair: what a chain says about a key does not depend on the order
// of its strategies, as far as severity goes.
func TestChainIsFair(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		directive := rapid.Custom(func(t *rapid.T) strategy.Directive {
			key := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key")
			exit := strategy.Exit{Kind: messages.ExitEvicted}
			return rapid.SampledFrom([]strategy.Directive{
				strategy.Resume(key), strategy.Wait(key), strategy.Restart(key, 0), strategy.Restart(key, time.Second),
				strategy.Stop(key, exit), strategy.Abandon(key, exit), strategy.Escalate(exit),
			}).Draw(t, "directive")
		})
		var strategies []strategy.Strategy
		for _, ds := range rapid.SliceOfN(rapid.SliceOfN(directive, 0, 4), 1, 5).Draw(t, "strategies") {
			strategies = append(strategies, fixed(ds))
		}
		order := rapid.Permutation(strategies).Draw(t, "order")
		said := func(s []strategy.Strategy) []string {
			out := say(strategy.Chain(s...).Decide(view{}, strategy.Tick{}))
			slices.Sort(out)
			return out
		}
		if a, b := said(strategies), said(order); !slices.Equal(a, b) {
			t.Fatalf("%v\n%v", a, b)
		}
		nested := said([]strategy.Strategy{strategy.Chain(strategies[:1]...), strategy.Chain(strategies[1:]...)})
		if a := said(strategies); !slices.Equal(a, nested) {
			t.Fatalf("nested: %v\n%v", a, nested)
		}
	})
}

func TestPin(t *testing.T) {
	t.Parallel()
	inside := strategy.Pin(strategy.Chain(strategy.IdleTTL(time.Minute), strategy.LRU(1)))
	decide(t, inside, []decision{
		{"exempt from its TTL", of3(idle("a", time.Hour, pinned)), strategy.Tick{}, nil},
		{"and when it has failed", of3(child("a", messages.ChildFailed, time.Hour, pinned)), strategy.Tick{}, nil},
		{"exempt from making room", of3(idle("a", 1, pinned), waiting("x", 1)), strategy.Spawning{Key: "x"}, []string{"stop x overloaded"}},
		{"another makes room", of3(idle("a", 2, pinned), idle("b", 1), waiting("x", 1)), strategy.Spawning{Key: "x"}, []string{"stop b evicted", "wait x"}},
		{"a pinned key that waits is refused like any other", of3(busy("a"), waiting("x", 1, pinned)), strategy.Spawning{Key: "x"}, []string{"stop x overloaded"}},
	})
	decide(t, strategy.Chain(strategy.Pin(strategy.LRU(1)), strategy.IdleTTL(time.Minute)), []decision{
		{"a strategy outside does not honour it", of3(idle("a", time.Hour, pinned)), strategy.Tick{}, []string{"stop a evicted"}},
	})
	decide(t, strategy.Pin(fixed{strategy.Stop("a", strategy.Exit{Kind: messages.ExitEvicted}), strategy.Stop("b", failed), strategy.Restart("a", 0)}), []decision{
		{"only evictions are filtered", of3(idle("a", 1, pinned), idle("b", 1, pinned)), strategy.Tick{}, []string{"stop b failed", "restart a"}},
	})
	v := of3(idle("a", 0, pinned), idle("b", 0))
	require.Zero(t, inside.(strategy.TTLs).TTL(v, "a"))
	require.Equal(t, noon.Add(time.Minute), inside.(strategy.TTLs).TTL(v, "b"))
	require.Zero(t, strategy.Pin(strategy.LRU(1)).(strategy.TTLs).TTL(v, "b"), "a strategy without a TTL has none")
}

func TestFor(t *testing.T) {
	t.Parallel()
	fish, bird := ofKind("fish"), ofKind("bird")
	v := of3(idle("a", time.Hour, fish), idle("b", time.Hour, bird), idle("c", time.Hour, bird), waiting("x", 1, fish))
	decide(t, strategy.For("bird", strategy.IdleTTL(time.Minute)), []decision{
		{"only its kind", v, strategy.Tick{}, []string{"stop b evicted", "stop c evicted"}},
	})
	decide(t, strategy.For("fish", strategy.LRU(2)), []decision{
		{"others take no place", v, strategy.Spawning{Key: "x"}, nil},
	})
	decide(t, strategy.For("bird", strategy.RestartOnce()), []decision{
		{"an event of another kind", of3(child("a", messages.ChildSuspended, 0, fish)), failOf("a"), nil},
		{"of its kind", of3(child("a", messages.ChildSuspended, 0, bird)), failOf("a"), []string{"restart a"}},
		{"of an unknown child", of3(), failOf("a"), nil},
	})
	decide(t, strategy.For("bird", fixed{strategy.Escalate(failed)}), []decision{
		{"it is not even asked about another kind", of3(busy("a")), failOf("a"), nil},
		{"nor about an unknown child", of3(), failOf("a"), nil},
	})
	seen := &spy{}
	v.failures = map[string][]time.Time{"a": before(1), "b": before(2)}
	strategy.For("bird", seen).Decide(v, strategy.Tick{})
	require.Equal(t, []string{"len 2", "b 1", "c 0", "a unknown, 0"}, seen.l)
	require.Equal(t, noon.Add(time.Minute-time.Hour), strategy.For("bird", strategy.IdleTTL(time.Minute)).(strategy.TTLs).TTL(v, "b"))
	require.Zero(t, strategy.For("bird", strategy.IdleTTL(time.Minute)).(strategy.TTLs).TTL(v, "a"))
}

// spy writes down what it sees.
type spy struct{ l []string }

func (s *spy) Decide(v strategy.View, _ strategy.Event) []strategy.Directive {
	s.l = append(s.l, fmt.Sprint("len ", v.Len()))
	for c := range v.Children() {
		s.l = append(s.l, fmt.Sprint(c.Key, " ", len(v.Failures(c.Key))))
	}
	if _, ok := v.Child("a"); !ok {
		s.l = append(s.l, fmt.Sprint("a unknown, ", len(v.Failures("a"))))
	}
	return nil
}
