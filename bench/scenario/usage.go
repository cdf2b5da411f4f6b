package scenario

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-run/coppice/bench/record"
	"github.com/coppice-run/coppice/messages"
)

// pids are the processes of a host's tree: those of sessions, and the servers that
// these stand behind.
type pids struct{ kernels, servers []int }

func processes(ctx context.Context, h host) (pids, error) {
	node, err := h.Snapshot(ctx)
	if err != nil {
		return pids{}, fmt.Errorf("look at the tree: %w", err)
	}
	var p pids
	var walk func(messages.Node)
	walk = func(n messages.Node) {
		switch {
		case n.PID == 0:
		case n.Kind == "kernel":
			p.kernels = append(p.kernels, n.PID)
		default:
			p.servers = append(p.servers, n.PID)
		}
		for _, c := range n.Children {
			walk(c)
		}
	}
	walk(node)
	return p, nil
}

// sampled is how many sessions are looked at for what all have alike.
const sampled = 32

// limits adds what sessions take of what a system has a limit of: descriptors and
// threads. before is the use of this process without them.
func (r *round) limits(p pids, before use) {
	now, ok := useOf(0)
	if !ok {
		return
	}
	n := float64(r.Sessions)
	r.metric("host-files", "/session", float64(now.files-before.files)/n, record.None)
	threads, files, looked := 0, 0, 0
	for i := 0; i < len(p.kernels); i += max(1, len(p.kernels)/sampled) {
		if u, ok := useOf(p.kernels[i]); ok {
			threads, files, looked = threads+u.threads, files+u.files, looked+1
		}
	}
	if looked == 0 {
		return // pretended
	}
	r.metric("session-threads", "/session", float64(threads)/float64(looked), record.None)
	r.metric("session-files", "/session", float64(files)/float64(looked), record.None)
	for _, pid := range p.servers {
		if u, ok := useOf(pid); ok {
			r.metric("server-files", "/session", float64(u.files)/n, record.None)
			return // one stands for all: there is one, unless one is in the way of ending
		}
	}
}

// idleTime adds the processor time that sessions take while they wait.
func (r *round) idleTime(ctx context.Context, p pids) error {
	if _, ok := useOf(0); !ok {
		return nil
	}
	r.tell("waiting")
	children := cpuOf(p)
	begin, own := time.Now(), ownCPU()
	if err := pause(ctx, r.Duration); err != nil {
		return err
	}
	own = ownCPU() - own // what it takes to read the times of thousands is not idleness
	took := time.Since(begin)
	children = cpuOf(p) - children
	r.metric("idle-cpu", "us/s/session", float64((own+children).Microseconds())/took.Seconds()/float64(r.Sessions), record.Less)
	return nil
}

func cpuOf(p pids) time.Duration {
	var all time.Duration
	for _, list := range [][]int{p.kernels, p.servers} {
		for _, pid := range list {
			all += cpuTime(pid)
		}
	}
	return all
}

const (
	// fullSpeed is how long calls are made as fast as they can be.
	fullSpeed = 2 * time.Second
	// callersPerCPU keep every processor busy.
	callersPerCPU = 4
)

// capacity adds how many calls the machine answers in a second when there are
// always more, and what one takes of a processor then. Latencies of such a load
// say nothing, and are not taken.
func (r *round) capacity(ctx context.Context, h host, sessions []session) error {
	p, err := processes(ctx, h)
	if err != nil {
		return err
	}
	r.tell("at full speed")
	var calls atomic.Int64
	children := cpuOf(p)
	begin, own := time.Now(), ownCPU()
	end := begin.Add(min(fullSpeed, r.Duration/2))
	var callers sync.WaitGroup
	for i := range min(len(sessions), callersPerCPU*runtime.NumCPU()) {
		s := sessions[i]
		callers.Go(func() {
			for time.Now().Before(end) && ctx.Err() == nil {
				if err := one(ctx, s, sum, "2"); err != nil {
					r.wrongs.add(err.Error())
					return
				}
				calls.Add(1)
			}
		})
	}
	callers.Wait()
	own, took := ownCPU()-own, time.Since(begin)
	n := float64(calls.Load())
	if n == 0 {
		return context.Cause(ctx)
	}
	r.metric("full-speed", "1/s", n/took.Seconds(), record.More)
	if children = cpuOf(p) - children; own > 0 {
		r.metric("cpu-per-call", "us", float64((own+children).Microseconds())/n, record.Less)
	}
	return nil
}
