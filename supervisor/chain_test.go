package supervisor_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// fixed always says the same.
type fixed []supervisor.Directive

func (f fixed) Decide(supervisor.View, supervisor.Event) []supervisor.Directive { return f }

func TestChain(t *testing.T) {
	t.Parallel()
	evict := supervisor.Exit{Kind: messages.ExitEvicted}
	for _, row := range []struct {
		name string
		all  []supervisor.Strategy
		want []string
	}{
		{"nobody", nil, nil},
		{"nil is skipped", []supervisor.Strategy{nil, fixed{supervisor.Resume("a")}, nil}, []string{"resume a"}},
		{"the most severe counts", []supervisor.Strategy{
			fixed{supervisor.Restart("a", 0)}, fixed{supervisor.Stop("a", evict)}, fixed{supervisor.Resume("a")},
		}, []string{"stop a evicted"}},
		{"per key", []supervisor.Strategy{
			fixed{supervisor.Restart("a", 0), supervisor.Stop("b", evict)}, fixed{supervisor.Abandon("b", evict), supervisor.Wait("c")},
		}, []string{"restart a", "abandon b evicted", "wait c"}},
		{"the longer wait counts", []supervisor.Strategy{
			fixed{supervisor.Restart("a", time.Second)}, fixed{supervisor.Restart("a", time.Minute)}, fixed{supervisor.Restart("a", 0)},
		}, []string{"restart a 1m0s"}},
		{"of equals the first counts", []supervisor.Strategy{
			fixed{supervisor.Stop("a", evict)}, fixed{supervisor.Stop("a", failed)},
		}, []string{"stop a evicted"}},
		{"escalate is beside all", []supervisor.Strategy{
			fixed{supervisor.Stop("a", evict)}, fixed{supervisor.Escalate(failed)},
		}, []string{"stop a evicted", "escalate failed"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := supervisor.Chain(row.all...).Decide(view{}, supervisor.Tick{})
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
	decide(t, supervisor.Chain(supervisor.Quota(1), supervisor.LRU(2)), []decision{
		{"one goes", v, supervisor.Spawning{Key: "x"}, []string{"stop b evicted", "wait x"}},
	})
	decide(t, supervisor.Chain(supervisor.Pin(supervisor.Chain(supervisor.For("", supervisor.Quota(1)))), supervisor.For("", supervisor.LRU(2))), []decision{
		{"through other views as well", v, supervisor.Spawning{Key: "x"}, []string{"stop b evicted", "wait x"}},
	})
	decide(t, supervisor.Chain(supervisor.IdleTTL(5), supervisor.LRU(1)), []decision{
		{"on a tick", of3(idle("a", 9), idle("b", 1)), supervisor.Tick{}, []string{"stop a evicted"}},
	})
}

// TestChainIsFair: what a chain says about a key does not depend on the order
// of its strategies, as far as severity goes.
func TestChainIsFair(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		directive := rapid.Custom(func(t *rapid.T) supervisor.Directive {
			key := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key")
			exit := supervisor.Exit{Kind: messages.ExitEvicted}
			return rapid.SampledFrom([]supervisor.Directive{
				supervisor.Resume(key), supervisor.Wait(key), supervisor.Restart(key, 0), supervisor.Restart(key, time.Second),
				supervisor.Stop(key, exit), supervisor.Abandon(key, exit), supervisor.Escalate(exit),
			}).Draw(t, "directive")
		})
		var strategies []supervisor.Strategy
		for _, ds := range rapid.SliceOfN(rapid.SliceOfN(directive, 0, 4), 1, 5).Draw(t, "strategies") {
			strategies = append(strategies, fixed(ds))
		}
		order := rapid.Permutation(strategies).Draw(t, "order")
		said := func(s []supervisor.Strategy) []string {
			out := say(supervisor.Chain(s...).Decide(view{}, supervisor.Tick{}))
			slices.Sort(out)
			return out
		}
		if a, b := said(strategies), said(order); !slices.Equal(a, b) {
			t.Fatalf("%v\n%v", a, b)
		}
		nested := said([]supervisor.Strategy{supervisor.Chain(strategies[:1]...), supervisor.Chain(strategies[1:]...)})
		if a := said(strategies); !slices.Equal(a, nested) {
			t.Fatalf("nested: %v\n%v", a, nested)
		}
	})
}

func TestPin(t *testing.T) {
	t.Parallel()
	inside := supervisor.Pin(supervisor.Chain(supervisor.IdleTTL(time.Minute), supervisor.LRU(1)))
	decide(t, inside, []decision{
		{"exempt from its TTL", of3(idle("a", time.Hour, pinned)), supervisor.Tick{}, nil},
		{"and when it has failed", of3(child("a", messages.ChildFailed, time.Hour, pinned)), supervisor.Tick{}, nil},
		{"exempt from making room", of3(idle("a", 1, pinned), waiting("x", 1)), supervisor.Spawning{Key: "x"}, []string{"stop x overloaded"}},
		{"another makes room", of3(idle("a", 2, pinned), idle("b", 1), waiting("x", 1)), supervisor.Spawning{Key: "x"}, []string{"stop b evicted", "wait x"}},
		{"a pinned key that waits is refused like any other", of3(busy("a"), waiting("x", 1, pinned)), supervisor.Spawning{Key: "x"}, []string{"stop x overloaded"}},
	})
	decide(t, supervisor.Chain(supervisor.Pin(supervisor.LRU(1)), supervisor.IdleTTL(time.Minute)), []decision{
		{"a strategy outside does not honour it", of3(idle("a", time.Hour, pinned)), supervisor.Tick{}, []string{"stop a evicted"}},
	})
	decide(t, supervisor.Pin(fixed{supervisor.Stop("a", supervisor.Exit{Kind: messages.ExitEvicted}), supervisor.Stop("b", failed), supervisor.Restart("a", 0)}), []decision{
		{"only evictions are filtered", of3(idle("a", 1, pinned), idle("b", 1, pinned)), supervisor.Tick{}, []string{"stop b failed", "restart a"}},
	})
	v := of3(idle("a", 0, pinned), idle("b", 0))
	require.Zero(t, inside.(supervisor.TTLs).TTL(v, "a"))
	require.Equal(t, noon.Add(time.Minute), inside.(supervisor.TTLs).TTL(v, "b"))
	require.Zero(t, supervisor.Pin(supervisor.LRU(1)).(supervisor.TTLs).TTL(v, "b"), "a strategy without a TTL has none")
}

func TestFor(t *testing.T) {
	t.Parallel()
	fish, bird := ofKind("fish"), ofKind("bird")
	v := of3(idle("a", time.Hour, fish), idle("b", time.Hour, bird), idle("c", time.Hour, bird), waiting("x", 1, fish))
	decide(t, supervisor.For("bird", supervisor.IdleTTL(time.Minute)), []decision{
		{"only its kind", v, supervisor.Tick{}, []string{"stop b evicted", "stop c evicted"}},
	})
	decide(t, supervisor.For("fish", supervisor.LRU(2)), []decision{
		{"others take no place", v, supervisor.Spawning{Key: "x"}, nil},
	})
	decide(t, supervisor.For("bird", supervisor.RestartOnce()), []decision{
		{"an event of another kind", of3(child("a", messages.ChildSuspended, 0, fish)), failOf("a"), nil},
		{"of its kind", of3(child("a", messages.ChildSuspended, 0, bird)), failOf("a"), []string{"restart a"}},
		{"of somebody unknown", of3(), failOf("a"), nil},
	})
	seen := &spy{}
	v.failures = map[string][]time.Time{"a": before(1), "b": before(2)}
	supervisor.For("bird", seen).Decide(v, supervisor.Tick{})
	require.Equal(t, []string{"len 2", "b 1", "c 0", "a unknown, 0"}, seen.l.take())
	require.Equal(t, noon.Add(time.Minute-time.Hour), supervisor.For("bird", supervisor.IdleTTL(time.Minute)).(supervisor.TTLs).TTL(v, "b"))
	require.Zero(t, supervisor.For("bird", supervisor.IdleTTL(time.Minute)).(supervisor.TTLs).TTL(v, "a"))
}

// spy writes down what it sees.
type spy struct{ l log }

func (s *spy) Decide(v supervisor.View, _ supervisor.Event) []supervisor.Directive {
	s.l.add(fmt.Sprint("len ", v.Len()))
	for c := range v.Children() {
		s.l.add(fmt.Sprint(c.Key, " ", len(v.Failures(c.Key))))
	}
	if _, ok := v.Child("a"); !ok {
		s.l.add(fmt.Sprint("a unknown, ", len(v.Failures("a"))))
	}
	return nil
}
