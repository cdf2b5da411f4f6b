package sim_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/coppice-run/coppice/actors/kernel"
)

// faults say how interpreters of one world start and end. Chances are in
// percent.
type faults struct {
	start      time.Duration // a start takes up to this long
	fail       int           // chance that a start fails
	exhausted  int           // chance that it fails for want of file descriptors
	stuck      int           // chance that it never ends by itself
	stubborn   int           // chance that it does not notice a cancelled ctx
	close      time.Duration // an end takes up to this long, in one of three cases
	late       int           // chance that an end takes longer than anybody waits for it
	pauseEvery int           // one in so many calls has a sink that takes its time; 0: none
}

// plan is what one start will do. It depends on the seed, the place and the
// number of the start alone, so that it is the same in every run.
type plan struct {
	delay, close    time.Duration
	err             error
	stuck, stubborn bool
}

func (w *world) plan(at *place) plan {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d", at.name, at.starts)
	r := rand.New(rand.NewPCG(w.seed, h.Sum64()))
	f := w.o.faults
	p := plan{delay: upTo(r, f.start), stubborn: chance(r, f.stubborn)}
	if r.IntN(3) == 0 {
		p.close = upTo(r, f.close)
	}
	switch {
	case chance(r, f.fail):
		p.err = errors.New("the interpreter ended at once")
	case chance(r, f.exhausted):
		p.err = fmt.Errorf("fork: %w", syscall.EMFILE)
	case chance(r, f.stuck):
		p.stuck = true
	}
	if chance(r, f.late) {
		p.close = stopTimeout + upTo(r, longestEnd-stopTimeout)
	}
	return p
}

func upTo(r *rand.Rand, d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(r.Int64N(int64(d)))
}

func chance(r *rand.Rand, percent int) bool { return r.IntN(100) < percent }

// backend makes the interpreters of one place in the tree: of a session's
// kernels, or of the kernel of one call.
type backend struct {
	w  *world
	at string
}

// Name is what results carry.
func (b backend) Name() string { return "sim" }

// Start makes an interpreter, or fails, as planned.
func (b backend) Start(ctx context.Context, _ kernel.StartOptions) (kernel.Interpreter, error) {
	w := b.w
	at, p := w.startBegins(b.at)
	err := p.wait(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.starting--
	at.starting--
	at.waits += w.now() - at.startedAt
	if err != nil {
		at.note(w, "start failed: "+err.Error(), "", 0)
		return nil, err
	}
	w.made++
	i := &interp{w: w, at: at, id: at.starts, close: p.close, upAt: w.now(), interrupts: make(chan struct{}, 8), done: make(chan struct{})}
	w.alive++
	at.live = i
	at.note(w, "up", "", i.id)
	return i, nil
}

func (p plan) wait(ctx context.Context) error {
	timer := time.NewTimer(p.delay)
	defer timer.Stop()
	end := timer.C
	if p.stuck {
		end = nil
	}
	if p.stubborn && !p.stuck {
		<-end
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return p.err
	}
	select {
	case <-end:
		return p.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// startBegins counts the start, before anything of it can be seen.
func (w *world) startBegins(name string) (*place, plan) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := w.place(name)
	p := w.plan(at)
	at.starts++
	at.note(w, "start", "", at.starts)
	if i := at.live; i != nil && i.closing && w.now()-i.closingAt >= stopTimeout {
		i.stray, at.live = true, nil
	}
	if at.live != nil || at.starting > 0 {
		w.breach(3, at, "an interpreter is started while there is another one")
	}
	at.starting++
	at.startedAt = w.now()
	w.starting++
	w.peak = max(w.peak, w.alive+w.starting)
	if w.alive+w.starting > w.o.capacity {
		w.breach(6, at, "%d interpreters live and %d start, %d are allowed", w.alive, w.starting, w.o.capacity)
	}
	return at, p
}

// begin notes that a cell is about to run.
func (w *world) begin(ctx context.Context, i *interp, r kernel.CellRequest) (*ran, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i.used(ctx, "execute")
	c := w.calls[r.Exec]
	switch {
	case c == nil:
		w.breach(1, i.at, "a cell of the unknown call %s runs", r.Exec)
		return nil, errClosed
	case ctx.Err() != nil:
		c.touched = true
		return nil, context.Cause(ctx)
	case i.gone:
		c.touched = true
		return nil, i.err
	}
	w.checkOrder(i, c, r.Index)
	if i.announced {
		w.breach(8, i.at, "%s runs in interpreter %d, whose state was called lost", r.Exec, i.id)
	}
	for len(i.interrupts) > 0 {
		<-i.interrupts
	}
	if i.counter == 0 && len(c.ran) == 0 && i.at.closedAt != w.now() {
		c.after = i.at.prior
	}
	if i.counter == 0 {
		i.firstAt = w.now()
	}
	i.counter++
	i.at.prior, i.touchedAt = i.id, w.now()
	rec := &ran{interp: i, call: c, counter: i.counter, began: w.now()}
	c.ran = append(c.ran, rec)
	i.running, i.at.recent = rec, c
	i.at.note(w, "runs "+r.Code, c.exec.ID, i.id)
	return rec, nil
}

// checkOrder is for invariants 1, 2, 4 and 12. The lock is held.
func (w *world) checkOrder(i *interp, c *call, index int) {
	switch {
	case c.answered:
		w.breach(1, i.at, "cell %d of %s runs after the result", index, c.exec.ID)
	case index < len(c.ran):
		w.breach(4, i.at, "cell %d of %s runs again", index, c.exec.ID)
	case index > len(c.ran):
		w.breach(2, i.at, "cell %d of %s runs before cell %d", index, c.exec.ID, len(c.ran))
	case i.running != nil:
		w.breach(2, i.at, "%s runs while %s does", c.exec.ID, i.running.call.exec.ID)
	case c.place != i.at:
		w.breach(2, i.at, "%s runs in the interpreter of %s", c.exec.ID, i.at.name)
	case c.cancelled != 0 && c.cancelled < w.now() && len(c.ran) == 0:
		w.breach(12, i.at, "%s begins after its caller has left", c.exec.ID)
	case c.seq < i.at.last:
		w.breach(2, i.at, "%s runs after a call that was submitted later", c.exec.ID)
	}
	i.at.last = c.seq
}

// over notes how a cell ended.
func (w *world) over(ctx context.Context, rec *ran, how string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rec.how = how
	rec.interp.running = nil
	rec.interp.at.note(w, how, rec.call.exec.ID, rec.interp.id)
	if how == "cut off" && evicted(ctx) {
		w.breach(5, rec.interp.at, "evicted while %s ran", rec.call.exec.ID)
	}
}

var _ kernel.Backend = backend{}
