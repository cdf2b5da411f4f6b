package jupyter

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/jupyter"
	"github.com/coppice-run/coppice/internal/opportunity"
)

// pool keeps kernels of one endpoint, or of the shards of one environment, that
// are started and have run nothing, so that a new session need not wait for one. A
// pool belongs to what it is of and ends with it, so that no kernel is used in
// another environment. A nil pool holds nothing.
//
// Kernels of sessions and those that wait or start are never more than max
// together. A session takes one that waits; else the one that is starting, if no
// other session waits for that; else it starts its own. So the pool never makes a
// session wait longer than it would without one, and never takes a place that a
// session could have.
//
// Nothing is started while a session that has just begun waits for its first
// answer, for at most warmHold: two starts at a time slow each other. A lazy pool
// starts nothing before a session has answered at all, and ends what waits when no
// session has begun for a time. The kernels of a pool have no lower priority of
// the system than others: without rights that could not be given back to the
// session that takes one.
//
// One goroutine, fill, starts and ends the kernels of the pool; sessions call the
// other methods from theirs.
type pool struct {
	size, max int
	lazy      bool
	idle      time.Duration // after which a lazy pool ends what waits; 0: never
	start     func(context.Context) (spare, error)

	mu       sync.Mutex
	ready    []spare       // guarded by mu
	dead     []spare       // guarded by mu: did not answer, to be ended by fill
	starting bool          // guarded by mu
	waiting  bool          // guarded by mu: a session waits for the one that starts
	live     int           // guarded by mu: kernels of sessions
	firsts   int           // guarded by mu: of those, how many have answered nothing yet
	begun    time.Time     // guarded by mu: when the last of them was taken
	stocked  time.Time     // guarded by mu: when the last kernel began to wait
	open     bool          // guarded by mu: the pool is not lazy, or a session has answered
	changed  chan struct{} // guarded by mu: closed and replaced with every change
}

// spare is a kernel of a pool, and where it is.
type spare struct {
	*jupyter.Kernel
	on *Endpoint
}

const (
	warmRetry = 5 * time.Second        // after a start that failed
	warmEnd   = 3 * time.Second        // for the end of one
	warmCalm  = 200 * time.Millisecond // before one is replaced: there may be more calls right now
	warmHold  = 10 * time.Second       // for the first answer of a session that has begun
)

// pool returns the pool that the options ask for, nil for none. start makes a
// kernel of a kind.
func (s *Server) pool(start func(ctx context.Context, name string) (spare, error)) *pool {
	if s.o.Warm <= 0 {
		return nil
	}
	name := s.o.KernelName
	if name == "" {
		name = defaultKernel
	}
	return newPool(s.o.Warm, s.o.MaxKernels, s.o.WarmIdle, s.o.WarmLazy, func(c context.Context) (spare, error) { return start(c, name) })
}

// keep fills the pool until the function that it returns is called, which waits for
// the end of the kernels in it.
func (p *pool) keep(ctx context.Context) (end func()) {
	if p == nil {
		return func() {}
	}
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

func newPool(size, limit int, idle time.Duration, lazy bool, start func(context.Context) (spare, error)) *pool {
	return &pool{size: size, max: limit, idle: idle, lazy: lazy, open: !lazy, start: start, changed: make(chan struct{})}
}

// start returns a kernel that waits, or a new one, and where it is: here or, for a
// shared gateway, on another shard; nil, with an error, when that is not known.
// Each must be given back with pool.gone when it is, and so must the call that
// failed. A new one of this machine waits for its turn. Those that wait are of the kernelspec
// usual; of another one, a new one is started.
func (e *Endpoint) start(ctx context.Context, usual, name string, turns *kernel.Turns, o kernel.StartOptions) (*jupyter.Kernel, *Endpoint, error) {
	if name != usual {
		e.warm.begins()
	} else if k, err := e.warm.take(ctx); k.Kernel != nil || err != nil {
		return k.Kernel, k.on, err
	}
	progress := o.Progress
	if e.Local {
		back, err := turns.Take(ctx, progress, o.Waiting)
		if err != nil {
			return nil, e, err
		}
		defer back()
		if o.Waiting != nil {
			o.Waiting(kernel.Waiting{Subject: opportunity.Processes(e.process())})
		}
	}
	r := jupyter.StartRequest{Name: name, OnStage: progress}
	if e.shards != nil {
		return e.shards.start(ctx, r)
	}
	r.Env = e.KernelEnv(nil)
	own, err := e.Client.Start(ctx, r)
	return own, e, err
}

// take counts one kernel more as a session's and returns it, or one that is nil:
// then the caller starts it.
func (p *pool) take(ctx context.Context) (spare, error) {
	if p == nil {
		return spare{}, nil
	}
	p.begins()
	for {
		k, changed := p.next()
		if k.Kernel == nil && changed == nil {
			return spare{}, nil
		}
		if k.Kernel != nil {
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
			return spare{}, err
		}
	}
}

// next takes a kernel that waits out of the pool, or returns what to wait for, or
// neither.
func (p *pool) next() (spare, <-chan struct{}) {
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
		return spare{}, p.changed
	}
	return spare{}, nil
}

// warmPing is for the answer of a kernel that is handed out.
var warmPing = opportunity.Budget{Opportunity: time.Second, Ceiling: 10 * time.Second}

// answers says whether a kernel that has waited is alive: it does not when it says
// nothing though it, and its gateway, had a processor to do so with. Which of the
// gateway's processes it is, no one knows: nothing ran in it yet.
func answers(ctx context.Context, k spare) bool {
	if k.Err() != nil {
		return false
	}
	var subject opportunity.Subject
	if k.on != nil && k.on.Local {
		subject = opportunity.Tree(k.on.process())
	}
	c, done := opportunity.Within(ctx, warmPing, subject)
	defer done()
	return k.Answers(c) == nil
}

// discard ends a kernel that will not be used.
func discard(k *jupyter.Kernel) {
	c, cancel := context.WithTimeout(context.Background(), warmEnd)
	defer cancel()
	_ = k.Delete(c) // otherwise its gateway ends it
}

// begins counts a session's kernel, which was there already or is about to be. Its
// first answer, and its end, have to be reported.
func (p *pool) begins() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.live++
	p.firsts++
	p.begun = time.Now()
	p.tellLocked()
}

// answered says that a session has answered for the first time (first), or that it
// never will.
func (p *pool) answered(first bool) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.firsts--
	p.open = p.open || first
	p.tellLocked()
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

// wantsLocked says whether one more is to be started now, and when to look again
// though nothing has changed; 0: never.
func (p *pool) wantsLocked() (bool, time.Duration) {
	since := time.Since(p.begun)
	var again time.Duration
	if p.lazy && p.idle > 0 && p.open && len(p.ready) > 0 {
		switch left := p.idle - min(since, time.Since(p.stocked)); {
		case left > 0:
			again = left
		case p.firsts == 0:
			p.open = false
			return false, time.Millisecond // to end what waits
		}
	}
	switch {
	case !p.open || len(p.ready) >= p.size || p.live+len(p.ready) >= p.max:
		return false, again
	case p.firsts > 0 && since < warmHold:
		return false, warmHold - since
	}
	return true, 0
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
		wanted, again := p.wantsLocked()
		p.starting = wanted
		var died <-chan struct{}
		if len(p.ready) > 0 {
			died = p.ready[0].Done() // the others are seen to when it is taken
		}
		p.mu.Unlock()
		if !wanted {
			pause = rest(ctx, changed, died, again)
			continue
		}
		k, err := p.start(ctx)
		p.mu.Lock()
		p.starting = false
		if err == nil {
			p.ready = append(p.ready, k)
			p.stocked = time.Now()
		} else {
			pause = warmRetry
		}
		p.tellLocked()
		p.mu.Unlock()
	}
}

// rest waits for a change or, if again is not 0, for that long, and returns for how
// long to hold back after it.
func rest(ctx context.Context, changed, died <-chan struct{}, again time.Duration) time.Duration {
	var due <-chan time.Time
	if again > 0 {
		t := time.NewTimer(again)
		defer t.Stop()
		due = t.C
	}
	select {
	case <-changed:
		return warmCalm
	case <-died:
	case <-due:
	case <-ctx.Done():
	}
	return 0
}

// unfit takes a kernel out of the pool that has died or did not answer, whose place a
// session has taken, or that has not been needed for long; nil when all are fit.
func (p *pool) unfit() *jupyter.Kernel {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.dead) > 0 {
		k := p.dead[0]
		p.dead = p.dead[1:]
		return k.Kernel
	}
	for i, k := range p.ready {
		if k.Err() != nil || p.live+len(p.ready) > p.max || !p.open {
			p.ready = append(p.ready[:i:i], p.ready[i+1:]...)
			return k.Kernel
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
		ending.Go(func() { _ = k.Delete(c) }) // otherwise its gateway ends it
	}
	ending.Wait()
}
