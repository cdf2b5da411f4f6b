package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/cli"
	"github.com/coppice-run/coppice/fleet"
)

// TestFigures measures a fleet and asserts none of it: make bench-fleet runs it.
func TestFigures(t *testing.T) {
	if os.Getenv("COPPICE_FLEET_FIGURES") == "" {
		t.Skip("set COPPICE_FLEET_FIGURES=1: it measures, and wants the machine for itself")
	}
	t.Run("front", figuresOfAFront)
	t.Run("claims", figuresOfClaims)
	t.Run("many", figuresOfManyClaims)
	t.Run("failover", figuresOfFailover)
}

// spread are the quantiles of some times.
func spread(times []time.Duration) string {
	slices.Sort(times)
	at := func(q float64) time.Duration {
		return times[min(len(times)-1, int(math.Ceil(q*float64(len(times))))-1)].Round(time.Microsecond)
	}
	return fmt.Sprintf("p50 %s, p90 %s, p99 %s, most %s (%d)", at(.5), at(.9), at(.99), times[len(times)-1].Round(time.Microsecond), len(times))
}

// figuresOfAFront asks the owner of a session and a front in turns: for what needs no code, and for a cell
// with its result.
func figuresOfAFront(t *testing.T) {
	const rounds = 2000
	nodes := newNodes(t)
	owner := nodes.node("owner")
	front := nodes.node("front", "--fleet-placement", "spread", "--fleet-front")
	require.Equal(t, http.StatusCreated, owner.run("first", "1", 0).status)
	owner.result("first")
	ask := map[string]func(n *node, i int) bool{
		"GET of a result": func(n *node, _ int) bool {
			return n.once(http.MethodGet, "/api/executions/first", "", 0, patience).status == http.StatusOK
		},
		"a cell with its result": func(n *node, i int) bool {
			id := fmt.Sprint(n.pid, "-", i)
			body := fmt.Sprintf(`{"id":%q,"session":"s","cells":[{"code":"1+1"}]}`, id)
			if n.once(http.MethodPost, "/api/executions", body, 1, patience).status != http.StatusCreated {
				return false
			}
			return n.once(http.MethodGet, "/api/executions/"+id+"?wait=10", "", 0, patience).status == http.StatusOK
		},
	}
	for name, do := range ask {
		direct, by, more := []time.Duration{}, []time.Duration{}, []time.Duration{}
		for i := range rounds {
			began := time.Now()
			require.True(t, do(owner, i))
			middle := time.Now()
			require.True(t, do(front, i))
			direct, by = append(direct, middle.Sub(began)), append(by, time.Since(middle))
			more = append(more, by[i]-direct[i])
		}
		t.Logf("%s, at its node: %s", name, spread(direct))
		t.Logf("%s, by a front:  %s", name, spread(by))
		t.Logf("%s, more by it:  %s", name, spread(more))
	}
}

// opened is a directory on servers of NATS that run as processes of their own, with those.
func opened(t *testing.T, servers int) (fleet.Directory, []*engine) {
	t.Helper()
	engines, ports := startEngines(t, servers)
	var urls []*url.URL
	for _, port := range ports {
		urls = append(urls, &url.URL{Scheme: "nats", Host: "127.0.0.1:" + strconv.Itoa(port)})
	}
	d, stop, err := open(t.Context(), cli.DirectoryOptions{URLs: urls, Synced: true, Secret: token, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { _ = stop() })
	return d, engines
}

func joined(t *testing.T, d fleet.Directory, name string) *fleet.Member {
	t.Helper()
	m, err := fleet.Join(t.Context(), fleet.Options{Directory: d, Name: name, URL: "http://127.0.0.1:1"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = m.Leave(context.WithoutCancel(t.Context())) })
	return m
}

// figuresOfClaims claims keys one after the other, on three servers that sync their disks.
func figuresOfClaims(t *testing.T) {
	d, _ := opened(t, 3)
	m := joined(t, d, "one")
	var claimed, released []time.Duration
	for i := range 2000 {
		began := time.Now()
		o, err := m.Claim(t.Context(), fmt.Sprint("key ", i))
		require.NoError(t, err)
		claimed = append(claimed, time.Since(began))
		began = time.Now()
		require.NoError(t, o.Release(t.Context()))
		released = append(released, time.Since(began))
	}
	t.Logf("a claim on three servers that sync always: %s", spread(claimed))
	t.Logf("its release:                               %s", spread(released))
}

// figuresOfManyClaims says what 50,000 claims take of a server and of a node, and how long one who comes
// then watches until it has heard of all.
func figuresOfManyClaims(t *testing.T) {
	const many, beside = 50_000, 64
	d, engines := opened(t, 1)
	m := joined(t, d, "one")
	heap := func() float64 {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return float64(s.HeapAlloc) / (1 << 20)
	}
	before, server := heap(), rss(t, engines[0].cmd.Process.Pid)
	began := time.Now()
	var claiming sync.WaitGroup
	for w := range beside {
		claiming.Go(func() {
			for i := w; i < many; i += beside {
				if _, err := m.Claim(t.Context(), fmt.Sprint("key ", i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	claiming.Wait()
	took := time.Since(began)
	t.Logf("%d claims by %d at once: %s, %.0f a second", many, beside, took.Round(time.Millisecond), many/took.Seconds())
	t.Logf("memory for them: the node's heap %.1f MiB more, the server %.1f MiB more (%.1f before)", heap()-before, rss(t, engines[0].cmd.Process.Pid)-server, server)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began, heard := time.Now(), 0
	err := d.Watch(ctx, "", func(e fleet.Entry) {
		if e.Key == "" {
			cancel()
			return
		}
		heard++
	})
	require.ErrorIs(t, err, context.Canceled)
	t.Logf("who comes then has heard of %d entries after %s", heard, time.Since(began).Round(time.Millisecond))
}

// rss is the memory of a process in MiB.
func rss(t *testing.T, pid int) float64 {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	for line := range strings.SplitSeq(string(data), "\n") {
		var kib float64
		if n, _ := fmt.Sscanf(line, "VmRSS: %f kB", &kib); n == 1 {
			return kib / 1024
		}
	}
	return 0
}

// figuresOfFailover kills the owner of a session with SIGKILL twenty times: how long it is until the session
// has run code at another node.
func figuresOfFailover(t *testing.T) {
	const rounds, lease = 20, 4 * time.Second
	nodes := newNodes(t)
	nodes.more = func() []string { return []string{"--fleet-ttl", lease.String()} }
	bound := lease + lease/10 + time.Second
	other := nodes.node("n0")
	epoch, within := 0, 0
	var took []time.Duration
	for i := range rounds {
		owner := nodes.node(fmt.Sprint("n", i+1))
		session := fmt.Sprint("s", i)
		body := func(id string) string {
			return fmt.Sprintf(`{"id":%q,"session":%q,"cells":[{"code":"1"}]}`, id, session)
		}
		require.Equal(t, http.StatusCreated, owner.once(http.MethodPost, "/api/executions", body(session+"a"), 0, patience).status)
		owner.once(http.MethodGet, "/api/executions/"+session+"a?wait=10", "", 0, patience)
		owner.signal(syscall.SIGKILL)
		began := time.Now()
		<-owner.gone
		for epoch = 1; ; {
			a := other.once(http.MethodPost, "/api/executions", body(session+"b"), epoch, patience)
			if now, _ := strconv.Atoi(a.header.Get("Coppice-Epoch")); a.status == http.StatusConflict && now > epoch {
				epoch = now
				continue
			}
			if a.status == http.StatusCreated {
				break
			}
			time.Sleep(10 * time.Millisecond) //nolint:forbidigo // between two questions to another process
		}
		a := other.once(http.MethodGet, "/api/executions/"+session+"b?wait=10", "", 0, patience)
		var x struct{ Result *json.RawMessage }
		require.NoError(t, json.Unmarshal([]byte(a.body), &x))
		require.NotNil(t, x.Result)
		took = append(took, time.Since(began))
		if took[i] <= bound {
			within++
		}
	}
	t.Logf("from SIGKILL of the owner to a result at another node, with a lease of %s: %s; %d of %d within %s", lease, spread(took), within, rounds, bound)
}
