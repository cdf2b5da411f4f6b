package jupyter

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/coppice-run/coppice/actors/internal/jupyter"
)

// pool keeps kernels of one endpoint that are started and have run nothing, so
// that a new session need not wait for one. A pool belongs to its endpoint and
// ends with it, so that no kernel is used in another environment. A nil pool
// holds nothing.
//
// Kernels of sessions and those that wait or start are never more than max
// together. A session takes one that waits; else the one that is starting, if no
// other session waits for that; else it starts its own. So the pool never makes a
// session wait longer than it would without one, and never takes a place that a
// session could have.
//
// One goroutine, fill, starts and ends the kernels of the pool; sessions call the
// other methods from theirs.
type pool struct {
	size, max int
	start     func(context.Context) (*jupyter.Kernel, error)

	mu       sync.Mutex
	ready    []*jupyter.Kernel // guarded by mu
	dead     []*jupyter.Kernel // guarded by mu: did not answer, to be ended by fill
	starting bool              // guarded by mu
	waiting  bool              // guarded by mu: a session waits for the one that starts
	live     int               // guarded by mu: kernels of sessions
	changed  chan struct{}     // guarded by mu: closed and replaced with every change
}

const (
	warmRetry = 5 * time.Second        // after a start that failed
	warmEnd   = 3 * time.Second        // for the end of one
	warmPing  = time.Second            // for an answer of one that is handed out
	warmCalm  = 200 * time.Millisecond // before one is replaced: the session that took it runs its first cell
)

// warm fills the pool of an endpoint until the function that it returns is
// called, which waits for the end of the kernels in it.
func (s *Server) warm(ctx context.Context, e *Endpoint) (end func()) {
	if s.o.Warm <= 0 {
		return func() {}
	}
	name := s.o.KernelName
	if name == "" {
		name = defaultKernel
	}
	p := newPool(s.o.Warm, s.o.MaxKernels, func(c context.Context) (*jupyter.Kernel, error) {
		return e.Client.Start(c, jupyter.StartRequest{Name: name, Env: e.KernelEnv(nil)})
	})
	e.warm = p
	life, cancel := context.WithCancel(ctx)
	var filling sync.WaitGroup
	filling.Go(func() {
		p.fill(life)
		// When ctx has not ended, the server has: its kernels are gone with it.
		p.end(ctx, ctx.Err() != nil)
	})
	return func() {
		cancel()
		filling.Wait()
	}
}

func newPool(size, limit int, start func(context.Context) (*jupyter.Kernel, error)) *pool {
	return &pool{size: size, max: limit, start: start, changed: make(chan struct{})}
}

// start returns a kernel that waits, or a new one. Each must be given back with
// pool.gone when it is, and so must the call that failed.
func (e *Endpoint) start(ctx context.Context, name string, progress func(string)) (*jupyter.Kernel, error) {
	k, err := e.warm.take(ctx)
	if k != nil || err != nil {
		return k, err
	}
	return e.Client.Start(ctx, jupyter.StartRequest{Name: name, Env: e.KernelEnv(nil), OnStage: progress})
}

// take counts one kernel more as a session's and returns it, or nil: then the
// caller starts it.
func (p *pool) take(ctx context.Context) (*jupyter.Kernel, error) {
	if p == nil {
		return nil, nil //nolint:nilnil // no kernel waits
	}
	p.mu.Lock()
	p.live++
	p.mu.Unlock()
	for {
		k, changed := p.next()
		if k == nil && changed == nil {
			return nil, nil //nolint:nilnil // no kernel waits
		}
		if k != nil {
			if answers(ctx, k) {
				return k, nil
			}
			p.mu.Lock()
			p.dead = append(p.dead, k)
			p.tellLocked()
			p.mu.Unlock()
			continue
		}
		var err error
		select {
		case <-changed:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		p.mu.Lock()
		p.waiting = false
		p.mu.Unlock()
		if err != nil {
			return nil, err
		}
	}
}

// next takes a kernel that waits out of the pool, or returns what to wait for, or
// neither.
func (p *pool) next() (*jupyter.Kernel, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.ready) > 0 {
		k := p.ready[0]
		p.ready = p.ready[1:]
		p.tellLocked()
		return k, nil
	}
	if p.starting && !p.waiting {
		p.waiting = true
		return nil, p.changed
	}
	return nil, nil
}

// answers says whether a kernel that has waited is alive.
func answers(ctx context.Context, k *jupyter.Kernel) bool {
	if k.Err() != nil {
		return false
	}
	c, cancel := context.WithTimeout(ctx, warmPing)
	defer cancel()
	return k.Answers(c) == nil
}

// discard ends a kernel that nobody will use.
func discard(k *jupyter.Kernel) {
	c, cancel := context.WithTimeout(context.Background(), warmEnd)
	defer cancel()
	_ = k.Delete(c) // its gateway ends it else
}

// adopted counts a session's kernel that was there already.
func (p *pool) adopted() { p.count(1) }

// gone says that a session's kernel has ended, or was never started.
func (p *pool) gone() { p.count(-1) }

func (p *pool) count(n int) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.live += n
	p.tellLocked()
}

func (p *pool) tellLocked() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// fill starts one kernel after the other, and ends those that died or that take a
// session's place, until ctx ends.
func (p *pool) fill(ctx context.Context) {
	pause := time.Duration(0)
	for {
		if pause > 0 {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil {
			return
		}
		pause = 0
		if k := p.unfit(); k != nil {
			discard(k)
			continue
		}
		p.mu.Lock()
		changed := p.changed
		p.starting = len(p.ready) < p.size && p.live+len(p.ready) < p.max
		wanted := p.starting
		var died <-chan struct{}
		if len(p.ready) > 0 {
			died = p.ready[0].Done() // the others are seen to when it is taken
		}
		p.mu.Unlock()
		if !wanted {
			select {
			case <-changed:
				pause = warmCalm
			case <-died:
			case <-ctx.Done():
			}
			continue
		}
		k, err := p.start(ctx)
		p.mu.Lock()
		p.starting = false
		if err == nil {
			p.ready = append(p.ready, k)
		} else {
			pause = warmRetry
		}
		p.tellLocked()
		p.mu.Unlock()
	}
}

// unfit takes a kernel out of the pool that has died or did not answer, or whose place a session has
// by now; nil when there is none.
func (p *pool) unfit() *jupyter.Kernel {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.dead) > 0 {
		k := p.dead[0]
		p.dead = p.dead[1:]
		return k
	}
	for i, k := range p.ready {
		if k.Err() != nil || p.live+len(p.ready) > p.max {
			p.ready = append(p.ready[:i:i], p.ready[i+1:]...)
			return k
		}
	}
	return nil
}

// end ends the kernels that wait, when they are alive still, and whoever waits for
// one goes without.
func (p *pool) end(ctx context.Context, alive bool) {
	p.mu.Lock()
	left := slices.Concat(p.dead, p.ready)
	p.dead, p.ready, p.starting = nil, nil, false
	p.tellLocked()
	p.mu.Unlock()
	c, cancel := context.WithTimeout(context.WithoutCancel(ctx), warmEnd)
	defer cancel()
	var ending sync.WaitGroup
	for _, k := range left {
		if !alive {
			k.Detach()
			continue
		}
		ending.Go(func() { _ = k.Delete(c) }) // its gateway ends it else
	}
	ending.Wait()
}
