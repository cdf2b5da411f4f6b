package jupyter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/coppice-run/coppice/internal/bridge"
	"github.com/coppice-run/coppice/internal/jupyter"
	"github.com/coppice-run/coppice/internal/kernelserver"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/internal/pyenv"
	"github.com/coppice-run/coppice/internal/sharedgateway"
)

// shards are the shared gateways that one host uses. A gateway bears so many
// kernels; it counts them itself, those of all hosts together, and refuses one
// more. So a host asks the first, and goes on to the next, which it finds or
// starts, when it is refused. It asks in this order each time: the gateways with
// high numbers empty first, and end themselves.
//
//	               it answers          no kernel of this host is on it, and it
//	       joining ──────────▶ held ── is neither the first nor the only one ─┐
//	         ▲  │                │ its gateway is gone: its kernels, and       │
//	a kernel │  │ an error       │ no others, are lost                         │
//	is asked │  ▼                ▼                                             │
//	for      not held ◀──────────┴─────────────────────────────────────────────┘
//
// [Server.Run] ends when the last that is held is gone. The goroutine that runs
// it owns the value; sessions and the pool of warm kernels call start, of and
// leave from theirs. Each gateway that is held has one goroutine, watch, which
// close joins.
type shards struct {
	s     *Server
	o     sharedgateway.Options
	calls *bridge.Server
	life  context.Context //nolint:containedctx // that of Server.Run
	warm  *pool
	last  chan error    // why the last one is gone
	rest  time.Duration // shardRest

	watching sync.WaitGroup

	mu      sync.Mutex
	held    map[int]*Endpoint     // guarded by mu
	joining map[int]chan struct{} // guarded by mu: closed at the end of a join
	closed  error                 // guarded by mu: why no more can be held
}

// errOver is what a start gets after the last gateway has gone: Server.Run begins
// again.
var errOver = errors.New("the shared gateway has ended")

const (
	// maxShards bounds how many gateways are asked for one kernel: they would have
	// 2,400, beyond what the memory of most machines holds.
	maxShards = 16
	// shardRest is how often a host looks whether it still uses a gateway.
	shardRest = 2 * time.Second
)

func newShards(ctx context.Context, s *Server, rt pyenv.Runtime, calls *bridge.Server) *shards {
	h := &shards{
		s: s, life: ctx, calls: calls, last: make(chan error, 1), rest: shardRest, held: map[int]*Endpoint{}, joining: map[int]chan struct{}{},
		o: sharedgateway.Options{
			Dir: sharedgateway.DirIn(s.o.Home), Runtime: rt, Check: check(rt), Start: s.o.Start, Suspicion: s.o.Suspicion,
			IdleEnd: s.o.IdleEnd, MaxKernels: s.o.ShardKernels, NoFork: s.o.NoFork,
		},
	}
	h.warm = s.pool(func(c context.Context, name string) (spare, error) {
		k, on, err := h.start(c, jupyter.StartRequest{Name: name})
		return spare{k, on}, err
	})
	return h
}

// start makes a kernel on the first gateway that has a place for it. r.Env is not
// heard. The endpoint may be nil when there is an error.
func (h *shards) start(ctx context.Context, r jupyter.StartRequest) (*jupyter.Kernel, *Endpoint, error) {
	var last *Endpoint
	var failed, full error
	for n := range maxShards {
		if failed != nil && !h.holds(n) {
			continue // where there is one already there may be a place
		}
		e, err := h.join(ctx, n)
		if err != nil {
			if n > 0 {
				err = fmt.Errorf("the shared gateways before number %d are full: %w", n, err)
			}
			if failed == nil {
				failed = err
			}
			if ctx.Err() != nil {
				break
			}
			continue
		}
		r.Env = e.KernelEnv(nil)
		k, err := e.Client.Start(ctx, r)
		h.leave(e, k)
		if !errors.Is(err, jupyter.ErrKernelLimit) {
			return k, e, err
		}
		last, full = e, err
	}
	if failed != nil {
		return nil, last, failed
	}
	return nil, last, fmt.Errorf("%d shared gateways are full: %w", maxShards, full)
}

// of returns the gateway that the journal names, nil when it is gone. It must be
// given back with leave.
func (h *shards) of(ctx context.Context, e sharedgateway.Entry) (*Endpoint, error) {
	if e.Fingerprint != "" && e.Fingerprint != sharedgateway.Fingerprint(h.o.Runtime) || process.Ended(e.Gateway) {
		return nil, nil //nolint:nilnil // it is gone, or another environment's
	}
	end, err := h.join(ctx, e.Shard)
	if err == nil && end.Shared.Process != e.Gateway {
		h.leave(end, nil)
		return nil, nil //nolint:nilnil // it is gone
	}
	return end, err
}

func (h *shards) holds(n int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.held[n] != nil
}

// join returns the gateway with a number, which stays held until leave.
func (h *shards) join(ctx context.Context, n int) (*Endpoint, error) {
	for {
		h.mu.Lock()
		e, wait := h.held[n], h.joining[n]
		switch {
		case h.closed != nil:
			defer h.mu.Unlock()
			return nil, h.closed
		case e != nil:
			e.starts++
			h.mu.Unlock()
			return e, nil
		case wait == nil:
			done := make(chan struct{})
			h.joining[n] = done
			h.mu.Unlock()
			e, err := h.open(ctx, n)
			if err = h.add(n, e, err); err != nil {
				e = nil
			}
			close(done)
			return e, err
		}
		h.mu.Unlock()
		select {
		case <-wait: // it may have failed since its caller left: look again
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the gateway: %w", context.Cause(ctx))
		}
	}
}

// open finds or starts a gateway.
func (h *shards) open(ctx context.Context, n int) (*Endpoint, error) {
	o := h.o
	o.Shard = n
	lease, err := sharedgateway.Acquire(ctx, o)
	if err != nil {
		return nil, err
	}
	client, err := jupyter.NewClient(jupyter.Options{URL: lease.URL, Token: lease.Token, Server: lease.Process, Trace: h.s.trace()})
	if err != nil {
		lease.Release()
		return nil, fmt.Errorf("use the gateway: %w", err)
	}
	return &Endpoint{
		Client: client, Local: true, Bridge: h.calls, Shared: lease, Env: variables(o.Runtime.Env), shards: h, warm: h.warm,
		KernelEnv: func(extra map[string]string) map[string]string {
			env := kernelVariables(nil)(extra)
			env[kernelserver.LeaseVariable] = lease.ID()
			return env
		},
	}, nil
}

// add ends a join: it holds the gateway for a caller of join, when there is one.
func (h *shards) add(n int, e *Endpoint, err error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.joining, n)
	if err == nil && h.closed != nil {
		e.release()
		err = h.closed
	}
	if err != nil {
		return err
	}
	e.starts++
	h.held[n] = e
	h.tellLocked()
	h.watching.Go(func() { h.watch(e) })
	return nil
}

// leave ends one use of a gateway, which may have made a kernel.
func (h *shards) leave(e *Endpoint, k *jupyter.Kernel) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e.starts--
	e.kernels = slices.DeleteFunc(e.kernels, ended)
	if k != nil {
		e.kernels = append(e.kernels, k)
	}
}

func ended(k *jupyter.Kernel) bool { return k.Err() != nil }

// watch follows a gateway until it is gone, the host has no use for it any more,
// or the host ends: then close gives it back.
func (h *shards) watch(e *Endpoint) {
	ctx, cancel := context.WithCancel(h.life)
	defer cancel()
	var looking sync.WaitGroup
	if e.Shared.Shard > 0 {
		looking.Go(func() {
			defer cancel()
			h.use(ctx, e)
		})
	}
	err := e.Shared.Watch(ctx, nil)
	cancel()
	looking.Wait()
	if err != nil {
		// First, so that a session which hears of it does not ask there again.
		h.drop(e, fmt.Errorf("the gateway ended: %w", err))
		if process.Ended(e.Shared.Process) {
			e.Client.ServerEnded()
		}
	}
	h.mu.Lock()
	given := h.held[e.Shared.Shard] != e
	h.mu.Unlock()
	if given {
		e.release()
	}
}

// use returns when this host has given a gateway up, or ctx has ended.
func (h *shards) use(ctx context.Context, e *Endpoint) {
	again := time.NewTicker(h.rest)
	defer again.Stop()
	for {
		select {
		case <-again.C:
			if h.rests(e) {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// rests says that this host has nothing on a gateway, and gives it up.
func (h *shards) rests(e *Endpoint) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	e.kernels = slices.DeleteFunc(e.kernels, ended)
	if len(h.held) < 2 || e.starts > 0 || len(e.kernels) > 0 || h.held[e.Shared.Shard] != e {
		return false
	}
	delete(h.held, e.Shared.Shard)
	h.tellLocked()
	return true
}

// drop forgets a gateway that is gone.
func (h *shards) drop(e *Endpoint, why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held[e.Shared.Shard] != e {
		return
	}
	delete(h.held, e.Shared.Shard)
	if len(h.held) == 0 {
		h.last <- why // it has room: Run ends with the first
		h.closed = errOver
	}
	h.tellLocked()
}

// tellLocked tells the server what is held.
func (h *shards) tellLocked() {
	ends := make([]*Endpoint, 0, len(h.held))
	for _, n := range slices.Sorted(maps.Keys(h.held)) {
		ends = append(ends, h.held[n])
	}
	if len(ends) > 0 { // else Server.Run ends, and says why
		h.s.ends.There(ends)
	}
}

// close joins the watchers, whose context has ended or who have nothing left to
// watch, and gives back what is held.
func (h *shards) close() {
	h.mu.Lock()
	if h.closed == nil {
		h.closed = errStopped
	}
	h.mu.Unlock()
	h.watching.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.held {
		e.release()
	}
	clear(h.held)
}

// release gives the gateway back to the others.
func (e *Endpoint) release() {
	e.Client.Close()
	e.Shared.Release()
}
