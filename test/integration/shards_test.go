//go:build linux

package integration_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/kernel/jupyter"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/proc"
)

// look returns the shared gateways by their shard and checks what must hold
// whenever somebody looks: one for each shard, and none with more kernels than it
// takes.
func (s sharing) look(t *testing.T) []jupyter.SharedStatus {
	t.Helper()
	found, err := jupyter.LookShared(t.Context(), filepath.Join(s.home, ".coppice"))
	require.NoError(t, err)
	for n, g := range found {
		require.Equal(t, n, g.Shard, "%+v", found)
		require.Equal(t, jupyter.SharedRunning, g.State, "%+v", found)
		require.LessOrEqual(t, g.Kernels, g.MaxKernels, "%+v", found)
	}
	return found
}

// loads are the numbers of kernels of gateways.
func loads(found []jupyter.SharedStatus) []int {
	var all []int
	for _, g := range found {
		all = append(all, g.Kernels)
	}
	return all
}

// atOnce is how many sessions begin at the same instant: of more, the last would
// wait for longer than a start may take.
const atOnce = 8

// fill begins sessions in several hosts at the same instant; each gets a value of
// its own.
func fill(t *testing.T, sessions int, hosts ...*coppice.Host) {
	t.Helper()
	results := make([]messages.Result, sessions*len(hosts))
	var filling sync.WaitGroup
	places := make(chan struct{}, atOnce)
	for n := range results {
		places <- struct{}{}
		filling.Go(func() {
			defer func() { <-places }()
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
func (s sharing) shards(t *testing.T, found []jupyter.SharedStatus, host *coppice.Host, sessions int) []int {
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
		on[n] = slices.IndexFunc(found, func(g jupyter.SharedStatus) bool { return g.PID == parents[kernel.PID] })
		require.GreaterOrEqual(t, on[n], 0, "%+v", kernel)
	}
	return on
}

// TestShards has more sessions than one shared gateway takes: they go on to a
// further one. The end of one loses its own sessions and no others, a later host
// finds the sessions of all, one that nobody uses ends itself, and a stop ends all.
func TestShards(t *testing.T) {
	t.Parallel()
	if full() {
		t.Run("8 on gateways that take 3", func(t *testing.T) { testHostsShare(t, 3, 4, []int{3, 3, 2}) })
		t.Run("170 on gateways that take 150", func(t *testing.T) { testHostsShare(t, 150, 85, []int{150, 20}) })
	}
	s := share(t)
	takes := 1
	if full() {
		takes = 2
	}
	options := func(o *coppice.Options) {
		o.Backend = coppice.Gateway(coppice.GatewayOptions{Shared: true, WarmKernels: -1, Kernels: takes, Idle: time.Second})
	}
	first := s.host(t, options)
	fill(t, takes+1, first)
	found := s.look(t)
	require.Equal(t, []int{takes, 1}, loads(found))
	on := s.shards(t, found, first, takes+1)
	here, there := slices.Index(on, 0), slices.Index(on, 1) // sessions on the first gateway and on the second
	s.end(t, first)

	second := s.host(t, options)
	for n := range on {
		r := run(t, session(second, n), cells("x"))
		require.Equal(t, fmt.Sprint(n), r.Text)
		require.Equal(t, messages.StateKept, r.State, "%+v", r)
	}
	require.NoError(t, syscall.Kill(found[0].PID, syscall.SIGKILL))
	r := run(t, session(second, there), cells("x"))
	require.Equal(t, fmt.Sprint(there), r.Text)
	require.Equal(t, messages.StateKept, r.State, "it was on the other one")
	r = run(t, session(second, here), cells("x = 7; x"))
	if r.Outcome == messages.OutcomeLost { // it was on its way when the gateway was killed
		r = run(t, session(second, here), cells("x = 7; x"))
	}
	require.True(t, strings.HasPrefix(r.Text, "7"), "%+v", r)
	require.Equal(t, messages.StateFresh, r.State)
	now := s.look(t)
	require.Len(t, now, 2)
	require.Equal(t, found[1].PID, now[1].PID)
	if full() {
		require.NoError(t, session(second, there).Close(t.Context()))
		require.Eventually(t, func() bool { return len(s.look(t)) == 1 }, 3*time.Minute, 100*time.Millisecond, "nobody uses the second one, and it ends itself")
		require.Equal(t, fmt.Sprint(there), run(t, session(second, there), cells(fmt.Sprint(there))).Text, "another is started when it is needed")
		require.Len(t, s.look(t), 2)
	}
	s.end(t, second)
	ended, err := jupyter.StopShared(t.Context(), filepath.Join(s.home, ".coppice"))
	require.NoError(t, err)
	require.Len(t, ended, 2)
	require.Empty(t, proc.WithEnv(marker, s.mark))
}

// testHostsShare has two hosts begin sessions at the same instant, more than their
// gateways take: they meet on the further ones, and nobody ever sees more kernels on
// one than it takes.
func testHostsShare(t *testing.T, takes, each int, want []int) {
	t.Helper()
	s := share(t)
	options := func(o *coppice.Options) {
		o.Backend = coppice.Gateway(coppice.GatewayOptions{Shared: true, WarmKernels: -1, Kernels: takes})
		o.MaxSessions, o.KeepSessions = each, false
		o.Timeout, o.IdleTTL, o.StartTimeout = 20*time.Minute, -1, 20*time.Minute
	}
	hosts := []*coppice.Host{s.host(t, options), s.host(t, options)}
	over := make(chan struct{})
	var looking sync.WaitGroup
	looks, most := 0, 0
	looking.Go(func() { // until over is closed; the test joins it
		for {
			select {
			case <-over:
				return
			case <-time.After(100 * time.Millisecond):
			}
			found, err := jupyter.LookShared(context.Background(), filepath.Join(s.home, ".coppice"))
			if err != nil {
				continue
			}
			looks++
			for _, g := range found {
				most = max(most, g.Kernels)
			}
		}
	})
	begin := time.Now()
	fill(t, each, hosts...)
	t.Logf("%d sessions answered within %v", 2*each, time.Since(begin).Round(time.Millisecond))
	close(over)
	looking.Wait()
	require.LessOrEqual(t, most, takes, "in %d looks", looks)
	found := s.look(t)
	require.Equal(t, want, loads(found))
	var own, all int64
	for _, p := range proc.WithEnv(marker, s.mark) {
		pss := pss(t, p.PID)
		if all += pss; strings.Contains(p.Command, sharedGatewayPy) {
			own += pss
		}
	}
	t.Logf("most kernels on one in %d looks: %d; at the end %v; memory (PSS) %d MiB, of it the gateways %d MiB", looks, most, loads(found), all>>20, own>>20)
	begin = time.Now()
	for n := range 2 * each {
		r := run(t, session(hosts[n%2], n), cells("x + 1"))
		require.Equal(t, fmt.Sprint(n+1), r.Text)
		require.Equal(t, messages.StateKept, r.State)
	}
	t.Logf("each answered again, one after the other, %v each", (time.Since(begin) / time.Duration(2*each)).Round(time.Microsecond))
	begin = time.Now()
	_, err := jupyter.StopShared(t.Context(), filepath.Join(s.home, ".coppice"))
	require.NoError(t, err)
	t.Logf("all ended within %v", time.Since(begin).Round(time.Millisecond))
}

// pss is the memory of a process, what it shares with others counted by its part.
func pss(t *testing.T, pid int) int64 {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	require.NoError(t, err)
	for line := range strings.Lines(string(data)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "Pss: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	return 0
}
