package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
)

// storm is a fleet under faults.
type storm struct {
	t       *testing.T
	rng     *rand.Rand
	engines []*engine
	places  []*place
	fronts  []*node

	began   time.Time
	mu      sync.Mutex
	history []porcupine.Operation // guarded by mu
	told    map[string]int        // what came of calls; guarded by mu
	faults  map[string]int        // guarded by mu
	epochs  map[string]int        // the highest of each session; guarded by mu
}

// engine is one of the servers of the directory.
type engine struct {
	args []string
	cmd  *exec.Cmd
}

func (e *engine) start(t *testing.T) {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	e.cmd = exec.Command(program) //nolint:noctx // it is killed
	e.cmd.Env = append(os.Environ(), asEngine+"="+strings.Join(e.args, " "))
	require.NoError(t, e.cmd.Start())
}

// startEngines starts that many, each of which syncs its disk always; one alone is no cluster. They end with
// the test.
func startEngines(t *testing.T, count int) (engines []*engine, ports []int) {
	t.Helper()
	ports = freePorts(t, count)
	for i, port := range ports {
		cluster := port + routes
		if count == 1 {
			cluster = 0
		}
		args := []string{t.TempDir(), strconv.Itoa(port), strconv.Itoa(cluster)}
		for j, other := range ports {
			if j != i {
				args = append(args, strconv.Itoa(other+routes))
			}
		}
		e := &engine{args: args}
		e.start(t)
		t.Cleanup(e.kill)
		engines = append(engines, e)
	}
	return engines, ports
}

func (e *engine) kill() {
	_ = e.cmd.Process.Kill()
	_ = e.cmd.Wait() // it was killed
}

// place is where a node is: the node itself may be another one after it was killed.
type place struct {
	fleet *nodes
	name  string
	ways  []*link // to the servers of the directory
	inner *link   // by which other nodes reach it
	node  *node   // nil while there is none
}

func (s *storm) start(p *place) {
	p.inner.lead("")
	p.node = p.fleet.node(p.name, "--fleet-ttl", stormTTL.String(), "--fleet-placement", "spread", "--fleet-url", "http://"+p.inner.at())
	p.inner.lead(strings.TrimPrefix(p.node.url, "http://"))
}

// stormTTL is short, so that much can happen in a minute.
const stormTTL = 4 * time.Second

func newStorm(t *testing.T, seed uint64) *storm {
	t.Helper()
	s := &storm{t: t, rng: rand.New(rand.NewPCG(seed, 1)), told: map[string]int{}, faults: map[string]int{}, epochs: map[string]int{}} //nolint:gosec // to be repeated
	engines, ports := startEngines(t, 3)
	s.engines = engines
	ways := func() (list []*link, servers string) {
		var names []string
		for _, port := range ports {
			k := newLink(t, "127.0.0.1:"+strconv.Itoa(port))
			list = append(list, k)
			names = append(names, "nats://"+k.at())
		}
		return list, strings.Join(names, ",")
	}
	work := t.TempDir()
	for _, name := range []string{"a", "b", "c", "d"} {
		p := &place{name: name, inner: newLink(t, "")}
		var servers string
		p.ways, servers = ways()
		p.fleet = &nodes{t: t, work: work, servers: servers, more: func() []string { return []string{"--fleet-synced"} }}
		s.start(p)
		s.places = append(s.places, p)
	}
	for _, name := range []string{"front-1", "front-2"} {
		_, servers := ways()
		fleet := &nodes{t: t, work: work, servers: servers, more: func() []string { return []string{"--fleet-synced"} }}
		s.fronts = append(s.fronts, fleet.node(name, "--fleet-ttl", stormTTL.String(), "--fleet-placement", "spread", "--fleet-front"))
	}
	s.began = time.Now()
	return s
}

// call makes one call of a session through a front, and notes what came of it. It returns the
// epoch that the client knows afterwards.
func (s *storm) call(front *node, who int, session string, epoch int) int {
	id := fmt.Sprintf("%s-%d-%d", session, who, time.Now().UnixNano())
	body, _ := json.Marshal(map[string]any{"id": id, "session": session, "cells": []map[string]string{{"code": "n = globals().get('n', 0) + 1\nprint(n)"}}})
	at := time.Since(s.began).Nanoseconds()
	o := porcupine.Operation{ClientId: who, Input: step{session, epoch}, Call: at}
	note := func(what string, told *came) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.told[what]++
		s.epochs[session] = max(s.epochs[session], epoch)
		if told == nil {
			return // it was not begun
		}
		o.Output, o.Return = *told, time.Since(s.began).Nanoseconds()
		if told.unknown {
			o.Return = 1 << 62
		}
		s.history = append(s.history, o)
	}
	a := front.once(http.MethodPost, "/api/executions", string(body), epoch, time.Minute)
	now, _ := strconv.Atoi(a.header.Get("Coppice-Epoch"))
	switch {
	case a.err != nil || a.code() == "lost" || a.code() == "unanswered" || a.status == http.StatusBadGateway:
		note("unknown", &came{unknown: true})
		// Each doubles what the judge has to look at, and a way that is cut fails at once.
		time.Sleep(500 * time.Millisecond) //nolint:forbidigo // between two questions to other processes
		return epoch
	case a.status == http.StatusConflict: // in that epoch it is not begun any more
		next := max(epoch, now)
		note(a.code(), nil)
		return next
	case a.status >= http.StatusBadRequest:
		note(a.code(), nil)
		return epoch
	}
	epoch = max(epoch, now)                                                                             // in which it is
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) { //nolint:forbidigo // between two questions to other processes
		a := front.once(http.MethodGet, "/api/executions/"+id+"?wait=10", "", 0, time.Minute)
		var x client.Execution
		switch {
		case a.status == http.StatusOK && json.Unmarshal([]byte(a.body), &x) == nil && x.Result != nil && x.Result.Outcome == "ok":
			value, err := strconv.Atoi(strings.TrimSpace(strings.Split(x.Result.Text, "\n")[0]))
			if err != nil {
				s.t.Errorf("%s: %q", id, x.Result.Text)
			}
			note("ok", &came{epoch: now, value: value, fresh: x.Result.State != "kept"})
			return epoch
		case a.status == http.StatusOK && x.Result != nil:
			note("ended "+string(x.Result.Outcome), &came{unknown: true})
			return epoch
		case a.status == http.StatusGone || a.status == http.StatusNotFound:
			note("lost", &came{unknown: true})
			return epoch
		}
	}
	note("never told", &came{unknown: true})
	return epoch
}

// fault does something to the fleet, and takes it back.
func (s *storm) fault(ctx context.Context) {
	p := s.places[s.rng.IntN(len(s.places))]
	e := s.engines[s.rng.IntN(len(s.engines))]
	short := time.Duration(s.rng.Int64N(int64(stormTTL)))
	long := stormTTL + time.Duration(s.rng.Int64N(int64(stormTTL)))
	rest := func(d time.Duration) {
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
	}
	cut := func(links []*link, d time.Duration) {
		for _, k := range links {
			k.set(true)
		}
		rest(d)
		for _, k := range links {
			k.set(false)
		}
	}
	what, do := "", func() {}
	switch s.rng.IntN(8) {
	case 0:
		what, do = "a node is killed", func() {
			_ = p.node.cmd.Process.Kill()
			<-p.node.gone
			rest(short)
			s.start(p)
		}
	case 1:
		what, do = "a node stands still for long", func() { s.still(p.node.cmd, long, rest) }
	case 2:
		what, do = "a node stands still", func() { s.still(p.node.cmd, short, rest) }
	case 3:
		what, do = "an engine is killed", func() { e.kill(); rest(short); e.start(s.t) }
	case 4:
		what, do = "an engine stands still", func() { s.still(e.cmd, short, rest) }
	case 5:
		what, do = "a node is cut from the engines", func() { cut(p.ways, long) }
	case 6:
		what, do = "a node is cut from the others", func() { cut([]*link{p.inner}, long) }
	case 7:
		what, do = "a node is cut from all", func() { cut(append(slices.Clone(p.ways), p.inner), long) }
	}
	s.mu.Lock()
	s.faults[what]++
	s.mu.Unlock()
	do()
}

func (s *storm) still(cmd *exec.Cmd, d time.Duration, rest func(time.Duration)) {
	_ = cmd.Process.Signal(syscall.SIGSTOP)
	rest(d)
	_ = cmd.Process.Signal(syscall.SIGCONT)
}

// TestAStorm has clients count in sessions through two fronts, while nodes and servers of the
// directory are killed, stand still, and are cut from one another. What they were told is judged by
// another's program: each call ran once or not at all, in no older epoch than one before it, and what
// was said to be kept was.
func TestAStorm(t *testing.T) {
	full(t)
	rounds, length := 10, time.Minute
	if n, err := strconv.Atoi(os.Getenv("COPPICE_STORM_ROUNDS")); err == nil {
		rounds = n
	}
	if d, err := time.ParseDuration(os.Getenv("COPPICE_STORM_TIME")); err == nil {
		length = d
	}
	for round := range rounds {
		seed := rand.Uint64()
		if n, err := strconv.ParseUint(os.Getenv("COPPICE_STORM_SEED"), 10, 64); err == nil {
			seed = n
		}
		t.Run(fmt.Sprint(round), func(t *testing.T) { inStorm(t, seed, length) })
	}
}

func inStorm(t *testing.T, seed uint64, length time.Duration) {
	t.Helper()
	s := newStorm(t, seed)
	const names, clients = 6, 4
	first := map[string]int{} // a call that names no epoch may run in any
	for i := range names {
		name := fmt.Sprint("s", i)
		require.Eventually(t, func() bool {
			first[name] = s.call(s.fronts[0], clients, name, 0)
			return first[name] > 0
		}, patience, 100*time.Millisecond, "%s begins", name)
	}
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	var calling sync.WaitGroup
	for who := range clients {
		rng := rand.New(rand.NewPCG(seed, uint64(who)+2)) //nolint:gosec // to be repeated
		calling.Go(func() {
			known := maps.Clone(first)
			for ctx.Err() == nil {
				session := fmt.Sprint("s", rng.IntN(names))
				known[session] = s.call(s.fronts[rng.IntN(len(s.fronts))], who, session, known[session])
			}
		})
	}
	for ctx.Err() == nil {
		s.fault(ctx)
		select {
		case <-time.After(time.Duration(s.rng.Int64N(int64(2 * time.Second)))):
		case <-ctx.Done():
		}
	}
	calling.Wait()
	result, _ := porcupine.CheckOperationsVerbose(sessions.ToModel(), s.history, 5*time.Minute)
	epochs := 0
	for _, e := range s.epochs {
		epochs += e
	}
	t.Logf("STORM seed %d: %s; %d calls %v; faults %v; %d epochs", seed, result, len(s.history), s.told, s.faults, epochs)
	require.Equal(t, porcupine.Ok, result)
	require.Positive(t, s.told["ok"])
}
