package kernel

import (
	"context"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// emit hands one event of cell i to the call's sinks. Once output is
// discarded it drops and counts: the interpreter is not to blame for a sink
// that takes nothing.
func (r *run) emit(c context.Context, ctx *supervisor.Ctx, i int, e messages.Event, output bool) error {
	r.emitting.Lock()
	defer r.emitting.Unlock()
	if r.meets(shown(e), ctx.Tell) {
		return r.drop()
	}
	if r.output.Err() != nil && r.life.Err() == nil {
		return r.drop()
	}
	if c == r.life { // as it nearly always is: output ends with it, and with discard
		c = r.output
	} else {
		var cancel context.CancelCauseFunc
		c, cancel = context.WithCancelCause(c)
		defer cancel(nil)
		defer context.AfterFunc(r.output, func() { cancel(context.Cause(r.output)) })()
	}
	e = e.At(messages.Position{Cell: i})
	r.noted(e, output)
	r.waiting.Store(true)
	ctx.Hold(true)
	err := r.exec.Out.Emit(c, e)
	ctx.Hold(false)
	r.waiting.Store(false)
	if err != nil && r.output.Err() != nil && r.life.Err() == nil {
		return r.drop()
	}
	return err
}

// drop leaves an event out.
func (r *run) drop() error {
	r.dropped++
	if _, ok := r.interp.(Backlogged); ok {
		return ErrEnough
	}
	return nil
}
