package jupyter

import (
	"context"
	"sync"
	"time"

	"github.com/coppice-run/coppice/actors/internal/jupyter"
)

// pool keeps kernels of one endpoint that are started and have run nothing, so
// that a new session need not wait for one. Those that live and those that wait
// are never more than max together: a session takes a kernel that waits, or the
// one that is starting, before it starts another. A pool belongs to its endpoint
// and ends with it, so that no kernel is used in another environment. A nil pool
// holds nothing.
type pool struct {
	size, max int
	start     func(context.Context) (*jupyter.Kernel, error)

	mu       sync.Mutex
	ready    []*jupyter.Kernel // guarded by mu
	starting bool              // guarded by mu
	live     int               // guarded by mu: kernels of sessions
	changed  chan struct{}     // guarded by mu: closed and replaced with every change
}

const (
	warmRetry = 5 * time.Second // after a start that failed
	warmEnd   = 3 * time.Second // for the end of one
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
	p := &pool{size: s.o.Warm, max: s.o.MaxKernels, changed: make(chan struct{}), start: func(c context.Context) (*jupyter.Kernel, error) {
		return e.Client.Start(c, jupyter.StartRequest{Name: name, Env: e.KernelEnv(nil)})
	}}
	e.warm = p
	life, cancel := context.WithCancel(ctx)
	var filling sync.WaitGroup
	filling.Go(func() { p.fill(life) })
	return func() {
		cancel()
		filling.Wait()
	}
}

// start returns a kernel that waits, or a new one. Each must be given back with
// pool.gone when it is.
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
	defer p.mu.Unlock()
	for {
		for len(p.ready) > 0 {
			k := p.ready[0]
			p.ready = p.ready[1:]
			if k.Err() == nil {
				p.live++
				p.tellLocked()
				return k, nil
			}
		}
		if !p.starting {
			p.live++
			return nil, nil //nolint:nilnil // no kernel waits
		}
		changed := p.changed
		p.mu.Unlock()
		var err error
		select {
		case <-changed:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		p.mu.Lock()
		if err != nil {
			p.live++ // the caller gives it back as it would a kernel
			return nil, err
		}
	}
}

// adopted counts a session's kernel that was there already.
func (p *pool) adopted() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.live++
}

// gone says that a session's kernel has ended, or was never started.
func (p *pool) gone() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.live--
	p.tellLocked()
}

func (p *pool) tellLocked() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// fill starts one kernel after the other until ctx ends, then ends those that
// wait.
func (p *pool) fill(ctx context.Context) {
	for ctx.Err() == nil {
		p.mu.Lock()
		changed := p.changed
		wanted := len(p.ready) < p.size && p.live+len(p.ready) < p.max
		p.starting = wanted
		p.mu.Unlock()
		if !wanted {
			select {
			case <-changed:
			case <-ctx.Done():
			}
			continue
		}
		k, err := p.start(ctx)
		p.mu.Lock()
		p.starting = false
		if err == nil {
			p.ready = append(p.ready, k)
		}
		p.tellLocked()
		p.mu.Unlock()
		if err != nil {
			select {
			case <-time.After(warmRetry):
			case <-ctx.Done():
			}
		}
	}
	p.mu.Lock()
	left := p.ready
	p.ready, p.starting = nil, false
	p.mu.Unlock()
	c, cancel := context.WithTimeout(context.WithoutCancel(ctx), warmEnd)
	defer cancel()
	var ending sync.WaitGroup
	for _, k := range left {
		ending.Go(func() { _ = k.Delete(c) }) // its gateway ends it else
	}
	ending.Wait()
}
