//go:build linux

package integration_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/proc"
)

// look returns the shared gateways by their shard and checks what must hold
// whenever somebody looks: one for each shard, and none with more kernels than it
// takes.
func (s sharing) look(t *testing.T) []coppice.GatewayStatus {
	t.Helper()
	found, err := coppice.Gateways(t.Context(), coppice.Options{Home: s.home})
	require.NoError(t, err)
	for n, g := range found {
		require.Equal(t, n, g.Shard, "%+v", found)
		require.Equal(t, coppice.GatewayRunning, g.State, "%+v", found)
		require.LessOrEqual(t, g.Kernels, g.MaxKernels, "%+v", found)
	}
	return found
}

// loads are the numbers of kernels of gateways.
func loads(found []coppice.GatewayStatus) []int {
	var all []int
	for _, g := range found {
		all = append(all, g.Kernels)
	}
	return all
}

// fill begins sessions in several hosts at the same instant; each gets a value of
// its own.
func fill(t *testing.T, sessions int, hosts ...*coppice.Host) {
	t.Helper()
	results := make([]messages.Result, sessions*len(hosts))
	var filling sync.WaitGroup
	for n := range results {
		filling.Go(func() {
			results[n], _ = session(hosts[n%len(hosts)], n).Execute(context.Background(), cells(fmt.Sprintf("x = %d; x", n))) // the result tells
		})
	}
	filling.Wait()
	for n, r := range results {
		require.Equal(t, messages.OutcomeOK, r.Outcome, "%+v", r)
		require.Equal(t, fmt.Sprint(n), r.Text)
	}
}

// shards says on which gateway each session of a host is.
func (s sharing) shards(t *testing.T, found []coppice.GatewayStatus, host *coppice.Host, sessions int) []int {
	t.Helper()
	parents := map[int]int{}
	for _, p := range proc.WithEnv(marker, s.mark) {
		parents[p.PID] = p.Parent
	}
	tree, err := host.Snapshot(t.Context())
	require.NoError(t, err)
	on := make([]int, sessions)
	for n := range on {
		kernel := find(tree, session(host, n).Key().ID())
		on[n] = slices.IndexFunc(found, func(g coppice.GatewayStatus) bool { return g.PID == parents[kernel.PID] })
		require.GreaterOrEqual(t, on[n], 0, "%+v", kernel)
	}
	return on
}

// TestShards has more sessions than one shared gateway takes: they go on to a
// further one. The end of one loses its own sessions and no others, a later host
// finds the sessions of all, one that nobody uses ends itself, and a stop ends all.
func TestShards(t *testing.T) {
	s := share(t)
	options := func(o *coppice.Options) { o.GatewayKernels = 2; o.GatewayIdle = time.Second }
	t.Chdir(t.TempDir())
	first := s.host(t, options)
	fill(t, 3, first)
	found := s.look(t)
	require.Equal(t, []int{2, 1}, loads(found))
	var there, elsewhere []int // sessions on the first gateway and on the second
	for n, shard := range s.shards(t, found, first, 3) {
		if shard == 0 {
			there = append(there, n)
		} else {
			elsewhere = append(elsewhere, n)
		}
	}
	require.Len(t, there, 2)

	require.NoError(t, syscall.Kill(found[0].PID, syscall.SIGKILL))
	r := run(t, session(first, elsewhere[0]), cells("x"))
	require.Equal(t, fmt.Sprint(elsewhere[0]), r.Text)
	require.Equal(t, messages.StateKept, r.State)
	r = run(t, session(first, there[0]), cells("x = 7; x"))
	require.Equal(t, messages.OutcomeOK, r.Outcome, "%+v", r)
	require.Equal(t, messages.StateFresh, r.State)
	s.end(t, first)

	second := s.host(t, options)
	for _, n := range []int{there[0], elsewhere[0]} {
		r := run(t, session(second, n), cells("x"))
		require.Equal(t, messages.StateKept, r.State, "%+v", r)
	}
	require.NoError(t, session(second, elsewhere[0]).Close(t.Context()))
	require.Eventually(t, func() bool { return len(s.look(t)) == 1 }, 30*time.Second, 100*time.Millisecond, "the further one ends itself")
	s.end(t, second)
	_, err := coppice.StopGateways(t.Context(), coppice.Options{Home: s.home})
	require.NoError(t, err)
	require.Empty(t, proc.WithEnv(marker, s.mark))
}
