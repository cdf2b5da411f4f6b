package strategy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

func of3(c ...strategy.ChildView) view { return view{children: c} }

func TestIdleTTL(t *testing.T) {
	t.Parallel()
	s := strategy.IdleTTL(time.Minute)
	decide(t, s, []decision{
		{"long enough", of3(idle("a", time.Minute)), strategy.Tick{}, []string{"stop a evicted"}},
		{"not yet", of3(idle("a", time.Minute-1)), strategy.Tick{}, nil},
		{"several", of3(idle("a", 2*time.Minute), idle("b", 0), idle("c", time.Hour)), strategy.Tick{}, []string{"stop c evicted", "stop a evicted"}},
		{"busy", of3(busy("a")), strategy.Tick{}, nil},
		{"starting", of3(child("a", messages.ChildStarting, time.Hour)), strategy.Tick{}, nil},
		{"suspended", of3(child("a", messages.ChildSuspended, time.Hour)), strategy.Tick{}, nil},
		{"work waits", of3(idle("a", time.Hour, queue)), strategy.Tick{}, nil},
		{"static", of3(idle("a", time.Hour, static)), strategy.Tick{}, nil},
		{"pinned, but pins do not count here", of3(idle("a", time.Hour, pinned)), strategy.Tick{}, []string{"stop a evicted"}},
		{"failed", of3(child("a", messages.ChildFailed, time.Minute)), strategy.Tick{}, []string{"stop a evicted"}},
		{"failed just now", of3(child("a", messages.ChildFailed, time.Second)), strategy.Tick{}, nil},
		{"only ticks count", of3(idle("a", time.Hour)), strategy.Spawning{Key: "a"}, nil},
	})
	ttls := s.(strategy.TTLs)
	v := of3(idle("a", 10*time.Second), busy("b"), child("c", messages.ChildFailed, 20*time.Second))
	require.Equal(t, noon.Add(50*time.Second), ttls.TTL(v, "a"))
	require.Zero(t, ttls.TTL(v, "b"))
	require.Equal(t, noon.Add(40*time.Second), ttls.TTL(v, "c"))
	require.Zero(t, ttls.TTL(v, "nobody"))
}

func TestHibernating(t *testing.T) {
	t.Parallel()
	s := strategy.Hibernating(strategy.Chain(strategy.IdleTTL(time.Minute), strategy.LRU(1)))
	decide(t, s, []decision{
		{"idle for long", of3(idle("a", time.Minute)), strategy.Tick{}, []string{"hibernate a"}},
		{"failed for long", of3(child("a", messages.ChildFailed, time.Minute)), strategy.Tick{}, []string{"stop a evicted"}},
		{"busy", of3(busy("a")), strategy.Tick{}, nil},
		{"someone waits for the place", of3(idle("a", time.Minute), waiting("new", 1)), strategy.Spawning{Key: "new"}, []string{"stop a evicted", "wait new"}},
	})
	evict := strategy.Exit{Kind: messages.ExitEvicted}
	decide(t, strategy.Hibernating(fixed{strategy.Abandon("a", evict), strategy.Stop("b", failed)}), []decision{
		{"only evictions in order", of3(idle("a", 1), idle("b", 1)), strategy.Tick{}, []string{"abandon a evicted", "stop b failed"}},
	})
	require.Equal(t, noon.Add(50*time.Second), s.(strategy.TTLs).TTL(of3(idle("a", 10*time.Second)), "a"))
	require.Zero(t, strategy.Hibernating(strategy.LRU(1)).(strategy.TTLs).TTL(of3(idle("a", 1)), "a"))
}

func TestLRU(t *testing.T) {
	t.Parallel()
	spawn := strategy.Spawning{Key: "new"}
	decide(t, strategy.LRU(2), []decision{
		{"room", of3(busy("a"), waiting("new", 1)), spawn, nil},
		{"the oldest goes", of3(idle("a", 1), idle("b", 2), waiting("new", 1)), spawn, []string{"stop b evicted", "wait new"}},
		{"of two of one age the first", of3(idle("a", 2), idle("b", 2), waiting("new", 1)), spawn, []string{"stop a evicted", "wait new"}},
		{"busy stays", of3(busy("a"), idle("b", 2), waiting("new", 1)), spawn, []string{"stop b evicted", "wait new"}},
		{"one with work stays", of3(idle("a", 3, queue), idle("b", 2), waiting("new", 1)), spawn, []string{"stop b evicted", "wait new"}},
		{"starting counts and stays", of3(child("a", messages.ChildStarting, 0), busy("b"), waiting("new", 1)), spawn, []string{"stop new overloaded"}},
		{"restarting counts", of3(child("a", messages.ChildRestarting, 0), busy("b"), waiting("new", 1)), spawn, []string{"stop new overloaded"}},
		{"suspended counts", of3(child("a", messages.ChildSuspended, 0), busy("b"), waiting("new", 1)), spawn, []string{"stop new overloaded"}},
		{"failed does not count", of3(child("a", messages.ChildFailed, 0), busy("b"), waiting("new", 1)), spawn, nil},
		{"waiting does not count", of3(busy("b"), waiting("x", 2), waiting("new", 1)), spawn, nil},
		{"static does not count", of3(idle("a", 1, static), idle("b", 1, static), waiting("new", 1)), spawn, nil},
		{"one that ends makes room", of3(child("a", messages.ChildStopping, 0), idle("b", 1), waiting("new", 1)), spawn, []string{"wait new"}},
		{"but not for two", of3(child("a", messages.ChildStopping, 0), idle("b", 1), waiting("old", 1), waiting("new", 2)), spawn, []string{"stop b evicted", "wait new"}},
		{"the first in the row has it", of3(child("a", messages.ChildStopping, 0), busy("b"), waiting("old", 2), waiting("new", 1)), spawn, []string{"wait new"}},
		{"the second has nothing", of3(child("a", messages.ChildStopping, 0), busy("b"), waiting("old", 1), waiting("new", 2)), spawn, []string{"stop new overloaded"}},
		{"too many, on a tick", of3(idle("a", 1), idle("b", 3), idle("c", 2), busy("d")), strategy.Tick{}, []string{"stop b evicted", "stop c evicted"}},
		{"too many, but some end already", of3(idle("a", 1), child("b", messages.ChildStopping, 0), idle("c", 2)), strategy.Tick{}, nil},
		{"too many, all busy", of3(busy("a"), busy("b"), busy("c")), strategy.Tick{}, nil},
		{"a failure is none of its business", of3(idle("a", 1), idle("b", 1), idle("c", 1)), failOf("a"), nil},
	})
}

func TestLRUQueue(t *testing.T) {
	t.Parallel()
	decide(t, strategy.LRUQueue(1, 2), []decision{
		{"the first waits", of3(busy("a"), waiting("x", 1)), strategy.Spawning{Key: "x"}, []string{"wait x"}},
		{"the second too", of3(busy("a"), waiting("x", 1), waiting("y", 2)), strategy.Spawning{Key: "y"}, []string{"wait y"}},
		{"the third does not", of3(busy("a"), waiting("x", 1), waiting("y", 2), waiting("z", 3)), strategy.Spawning{Key: "z"}, []string{"stop z overloaded"}},
		{"the first goes on waiting when a third comes", of3(busy("a"), waiting("x", 1), waiting("y", 2), waiting("z", 3)), strategy.Spawning{Key: "x"}, []string{"wait x"}},
		{"idle ones still go", of3(idle("a", 1), waiting("x", 1)), strategy.Spawning{Key: "x"}, []string{"stop a evicted", "wait x"}},
	})
}

func TestQuota(t *testing.T) {
	t.Parallel()
	mine, yours := ofOwner("me"), ofOwner("you")
	decide(t, strategy.Quota(1), []decision{
		{"others' do not count", of3(idle("a", 9, yours), waiting("x", 1, mine)), strategy.Spawning{Key: "x"}, nil},
		{"mine goes", of3(idle("a", 9, yours), idle("b", 1, mine), waiting("x", 1, mine)), strategy.Spawning{Key: "x"}, []string{"stop b evicted", "wait x"}},
		{"mine is busy", of3(idle("a", 9, yours), child("b", messages.ChildBusy, 1, mine), waiting("x", 1, mine)), strategy.Spawning{Key: "x"}, []string{"stop x overloaded"}},
		{"others that wait do not count", of3(child("b", messages.ChildStopping, 1, mine), waiting("w", 1, yours), waiting("x", 2, mine)), strategy.Spawning{Key: "x"}, []string{"wait x"}},
		{"without an owner it is not counted", of3(idle("a", 9), idle("b", 9), waiting("x", 1)), strategy.Spawning{Key: "x"}, nil},
		{"a tick", of3(idle("a", 9, mine), idle("b", 9, mine)), strategy.Tick{}, nil},
	})
}

func TestMaxRSS(t *testing.T) {
	t.Parallel()
	rss := func(mib int64) func(*strategy.ChildView) {
		return func(c *strategy.ChildView) { c.RSS = mib << 20 }
	}
	s := strategy.MaxRSS(512 << 20)
	decide(t, s, []decision{
		{"above", of3(idle("a", 1, rss(600)), idle("b", 1, rss(512)), idle("c", 1)), strategy.Tick{}, []string{"stop a evicted"}},
		{"busy", of3(child("a", messages.ChildBusy, 1, rss(600))), strategy.Tick{}, nil},
		{"work waits", of3(idle("a", 1, rss(600), queue)), strategy.Tick{}, nil},
		{"only ticks count", of3(idle("a", 1, rss(600))), strategy.Spawning{Key: "a"}, nil},
	})
	exit := s.Decide(of3(idle("a", 1, rss(600))), strategy.Tick{})[0].Exit
	require.EqualError(t, exit, "evicted: its memory, 600 MiB, is over the limit of 512 MiB")
}
