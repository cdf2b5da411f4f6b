package kernel

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// errCellEnded ends what a cell still asks of its host when it has ended.
var errCellEnded = errors.New("the cell has ended")

// pauses is the time that a call spends waiting for its host, which is not
// active time. Any goroutine may use it.
type pauses struct {
	mu    sync.Mutex
	n     int           // what waits now; guarded by mu
	since time.Time     // when the first of them began; guarded by mu
	total time.Duration // of those that are over; guarded by mu
}

func (p *pauses) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.n++; p.n == 1 {
		p.since = time.Now()
	}
}

// end reports whether nothing waits any more.
func (p *pauses) end() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.n--; p.n > 0 {
		return false
	}
	p.total += time.Since(p.since)
	return true
}

// sum returns the time so far, and whether something waits now.
func (p *pauses) sum() (time.Duration, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.n == 0 {
		return p.total, false
	}
	return p.total + time.Since(p.since), true
}

// hosting is what one cell of a run asks of its host: questions and calls. The
// backend's goroutines use it while the cell runs; the run's goroutine closes it
// and joins what it has begun.
type hosting struct {
	run  *run
	ctx  *supervisor.Ctx
	emit func(context.Context, messages.Event) error
	// life ends with the cell. It is made for the first that asks or calls, in
	// enter; guarded by mu until then.
	life context.Context
	end  context.CancelCauseFunc

	mu      sync.Mutex
	closed  bool           // guarded by mu
	called  atomic.Int64   // calls so far
	pending sync.WaitGroup // grows under mu while closed is false
}

func (r *run) hosting(ctx *supervisor.Ctx, emit func(context.Context, messages.Event) error) *hosting {
	return &hosting{run: r, ctx: ctx, emit: emit}
}

// close ends everything that the cell still waits for, and joins it.
func (h *hosting) close() {
	h.mu.Lock()
	h.closed = true
	end := h.end
	h.mu.Unlock()
	if end == nil {
		return
	}
	end(errCellEnded)
	h.pending.Wait()
}

// enter begins something that close joins. False: the cell has ended.
func (h *hosting) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	if h.life == nil {
		h.life, h.end = context.WithCancelCause(h.run.life)
	}
	h.pending.Add(1)
	return true
}

// ask puts a question of the interpreter to the host. The question is known to
// the host before it is announced. Its id is that of the interpreter, which the next
// host that goes on with the call asks by, too.
func (h *hosting) ask(q messages.InputRequest) error {
	if !h.enter() {
		return nil
	}
	r, id := h.run, q.ID
	q.ID = fmt.Sprintf("%s-%d-%s", r.exec.ID, r.lastIndex, id)
	q.IdleTimeoutMS = r.exec.InputTimeout.Milliseconds()
	r.pauses.begin()
	answer := r.exec.HostCalls.Ask(h.life, q)
	go func() { // ends with the answer, at the latest when the cell does; close joins it
		defer h.pending.Done()
		a := <-answer
		h.resume()
		if h.life.Err() == nil {
			_ = r.interp.AnswerInput(h.life, id, a) // an interpreter that cannot take it is gone, and says so by Done
		}
	}()
	return h.emit(r.life, q)
}

// call serves one host call. It is called from any goroutine of the backend.
func (h *hosting) call(ctx context.Context, c messages.HostCall) messages.HostResult {
	if !h.enter() {
		return refusedCall("the cell that made the call has ended")
	}
	defer h.pending.Done()
	r := h.run
	if r.exec.HostCalls == nil {
		return refusedCall("this call has no host functions")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(h.life, func() { cancel(context.Cause(h.life)) })()

	c.ID, c.Cell = fmt.Sprintf("%s-%d-c%d", r.exec.ID, r.lastIndex, h.called.Add(1)), r.lastIndex
	step := messages.HostCallStep{Call: c.ID, Kind: c.Kind, Name: c.Name, Phase: messages.CallStarted}
	_ = h.emit(r.life, step) // the flush reports a sink that is gone
	begin := time.Now()
	if r.exec.HostCalls.Pauses(c) {
		r.pauses.begin()
		defer h.resume()
	}
	result := r.exec.HostCalls.Call(ctx, c, func(e messages.HostEvent) { _ = h.emit(r.life, e) })
	step.Phase, step.Error, step.DurationMS = messages.CallCompleted, result.Error, time.Since(begin).Milliseconds()
	if result.Error != nil {
		step.Phase = messages.CallFailed
	}
	_ = h.emit(r.life, step)
	return result
}

// resume ends a pause. The actor hears of it when the time goes on.
func (h *hosting) resume() {
	if h.run.pauses.end() {
		h.ctx.Tell(resumed{h.run})
	}
}

func refusedCall(why string) messages.HostResult {
	return messages.HostResult{Error: &messages.HostError{Type: "HostCallError", Message: why}}
}
