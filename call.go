package coppice

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"time"

	"github.com/coppice-run/coppice/internal/hostcall"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks"
	"github.com/coppice-run/coppice/supervisor"
	"github.com/coppice-run/coppice/workspace"
)

// call is one call on its way: what is sent, to which gateway, and what its code
// may ask of the host.
type call struct {
	gateway supervisor.Ref
	exec    messages.Execute
	began   time.Time
	// offer is what the code reaches of the host. nil: nothing, as a command.
	offer *hostcall.Offer
	// onQueued is called when the call has its place. nil: no one waits for that.
	onQueued func()
	// begin sends the call, unless its workspace has ended. nil: it belongs to none.
	begin func(send func() error) error
}

// begin settles the times of a call that is made now: the timeout of the host where
// it names none, and the deadline.
func (h *Host) begin(exec *messages.Execute) time.Time {
	now := time.Now()
	exec.Made = now
	if exec.Timeout == 0 {
		exec.Timeout = h.o.Timeout
	}
	exec.Timeout = max(exec.Timeout, 0) // NoTimeout
	if exec.Timeout > 0 {
		exec.Deadline = now.Add(exec.Timeout)
	}
	return now
}

// perform makes a call that was checked, and returns its result with the text. Extra
// sinks get the events besides the result sink.
func (h *Host) perform(ctx context.Context, c call, extra ...sinks.Sink) (messages.Result, error) {
	out, err := h.hub.Open(ctx, c.exec, extra...)
	if err != nil {
		switch {
		case ctx.Err() == nil:
			err = ErrClosed // the sinks end with the host
		case !errors.Is(err, ErrClosed):
			return c.unsent(ctx), err
		}
		return refused(c.exec, err), err
	}
	defer out.Close()
	c.exec.Out = out
	var calls *hostcall.Calls
	if c.offer != nil {
		calls = h.calls.Calls(c.exec, *c.offer)
		c.exec.HostCalls = calls
	}
	reply, err := c.send()
	if err != nil {
		return refused(c.exec, err), err
	}
	if c.onQueued != nil {
		c.onQueued()
	}
	result, err := reply.Wait(ctx)
	if err != nil && ctx.Err() != nil {
		c.gateway.Tell(c.interrupt(ctx))
		result, err = reply.Wait(context.WithoutCancel(ctx))
	}
	if err != nil {
		return refused(c.exec, ErrClosed), ErrClosed
	}
	if calls != nil {
		result.Notices = append(result.Notices, calls.Ended(ctx, result.Outcome, func(e messages.HostEvent) {
			late, cancel := context.WithTimeout(context.WithoutCancel(ctx), eventWait)
			defer cancel()
			_ = out.Emit(late, e.At(messages.Position{Cell: -1})) // a sink that is full goes without
		})...)
	}
	result.Duration = time.Since(c.began)
	result.Text = sinks.BuildText(result)
	// A sink that does not return must not hold a result: it has as long as the
	// end of a call's output has.
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishWait)
	defer cancel()
	if err := out.Finish(late, result); err != nil {
		h.o.Logger.Error("a sink did not take the result in time", "exec", c.exec.ID, "err", err)
	}
	return result, nil
}

// send hands the call to its gateway.
func (c call) send() (supervisor.Reply[messages.Result], error) {
	if c.begin == nil {
		return submit(c.gateway, c.exec)
	}
	return submitIn(c.begin, c.gateway, c.exec)
}

// submitIn has begin submit a call. It is apart, so that a call without one allocates
// nothing for it.
func submitIn(begin func(func() error) error, gateway supervisor.Ref, exec messages.Execute) (reply supervisor.Reply[messages.Result], err error) {
	err = begin(func() (err error) {
		reply, err = submit(gateway, exec)
		return err
	})
	return reply, err
}

func submit(gateway supervisor.Ref, exec messages.Execute) (supervisor.Reply[messages.Result], error) {
	_, reply, err := supervisor.Begin[messages.Result](gateway, exec)
	if err != nil {
		return reply, ErrClosed
	}
	return reply, nil
}

// eventWait bounds the wait for sinks that take what follows the last cell.
const eventWait = time.Second

// finishWait bounds the wait for sinks that take results.
const finishWait = 30 * time.Second

// interrupt ends the call because ctx has ended.
func (c call) interrupt(ctx context.Context) messages.Interrupt {
	i := messages.Interrupt{Key: c.exec.Key, Exec: c.exec.ID, Cause: messages.CauseCancelled}
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		i.Cause = messages.CauseTimeout
		if at, ok := ctx.Deadline(); ok {
			i.Deadline = max(at.Sub(c.began), time.Nanosecond)
		}
	}
	return i
}

// unsent is the result of a call whose caller had left before it was made: as that of one who
// leaves while it waits.
func (c call) unsent(ctx context.Context) messages.Result {
	r := messages.NotStarted(c.exec, "", "", "")
	r.Outcome, r.Progress.Stop = messages.OutcomeCancelled, messages.StopCancel
	if c.interrupt(ctx).Cause == messages.CauseTimeout { // how long the caller had is not known here
		r.Outcome, r.Progress.Stop, r.Remedy = messages.OutcomeTimeout, messages.StopDeadline, messages.RemedyMoreTime
	}
	r.Reason = r.Progress.NotRun()
	r.Text = sinks.BuildText(r)
	return r
}

// refused is the result of a call that was not made.
func refused(exec messages.Execute, err error) messages.Result {
	why, reason, gone := messages.RefusedRequest, err.Error(), false
	ended, is := errors.AsType[*workspace.EndedError](err)
	switch {
	case errors.Is(err, ErrClosed), is && ended.Reason == workspace.ReasonShutdown:
		why = messages.RefusedDraining
	case is:
		why, reason, gone = messages.RefusedClosed, reason+"; "+messages.WorkspaceGone, true
	}
	r := messages.NotStarted(exec, "", why, reason)
	if gone {
		r.Remedy = messages.RemedyRequest
	}
	r.Text = sinks.BuildText(r)
	return r
}

// told returns the error beside a result: that of a call that no kernel took is in
// the result.
func told(result messages.Result, err error) (messages.Result, error) {
	if err == nil && result.Outcome == messages.OutcomeNotStarted {
		err = result.Err()
	}
	return result, err
}

// events makes a call and yields what happens, as [Session.Stream] says.
func events(ctx context.Context, execute func(context.Context, sinks.Sink) (messages.Result, error)) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		if ctx == nil {
			yield(nil, errNoContext)
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stream := sinks.NewChannel(0)
		type end struct {
			result messages.Result
			err    error
			died   error // how a function of the host ended the goroutine
		}
		ended := make(chan end, 1)
		go func() {
			var e end
			supervisor.Guarded(func() error {
				e.result, e.err = execute(ctx, stream)
				return nil
			}, func(err error) {
				e.died = err
				stream.Finish()
				ended <- e
			})
		}()
		defer func() { // join: also when the consumer leaves, or panics
			cancel()
			stream.Leave()
			if ended != nil {
				<-ended
			}
		}()
		last := messages.Position{Cell: -1}
		for e := range stream.Events() {
			last.Seq = e.Pos().Seq
			if !yield(e, nil) {
				return
			}
		}
		e := <-ended
		ended = nil
		if exit, ok := errors.AsType[supervisor.Exit](e.died); ok {
			if exit.Kind == messages.ExitPanicked {
				panic(exit.Panic) // as Execute does: in the goroutine of the caller
			}
			runtime.Goexit()
		}
		if e.err != nil {
			yield(nil, e.err)
			return
		}
		last.Seq++
		yield(messages.Final{Position: last, Result: e.result}, nil)
	}
}

// Execute runs the request's cells in the session's kernel, which is started if
// there is none, and returns when the call has ended. When ctx ends first, the
// call is interrupted and the result says cancelled, or timeout for a deadline
// of ctx; Execute waits for that result, for no longer than the interrupt's
// grace, the end of the output, 2 s for what primitives do at the end of a call (10 s
// while ctx lasts), and 30 s for sinks that take results (the audit log).
//
// The error is a *RequestError, ErrClosed after Shutdown, or a *[messages.NotStartedError]
// when no kernel took the call, which matches [messages.ErrOverloaded] when there was no place:
// nothing ran then, and the result says not_started. It is that of a ctx which had ended
// before: the result says cancelled, or timeout for a deadline, and that nothing ran. What became of code that ran is the result's to say:
// [messages.Result.Err] is nil only for code that ran to its end.
func (s *Session) Execute(ctx context.Context, r Request) (messages.Result, error) {
	return told(s.execute(ctx, r))
}

// Stream is Execute with its events as they happen; the last one is a
// messages.Final. A consumer that is slow holds the output back, not the
// kernel's memory; one that leaves the loop interrupts the call. When the
// request could not be made the only element is the error.
func (s *Session) Stream(ctx context.Context, r Request) iter.Seq2[messages.Event, error] {
	return events(ctx, func(ctx context.Context, to sinks.Sink) (messages.Result, error) { return s.execute(ctx, r, to) })
}

// execute makes one call, and a second one where Options.Replay asks for it.
// Extra sinks get the events besides the result sink; a call that has some is
// never made twice, since its events were seen.
func (s *Session) execute(ctx context.Context, r Request, extra ...sinks.Sink) (messages.Result, error) {
	result, err := s.once(ctx, r, extra...)
	if err != nil || result.Outcome != messages.OutcomeLost || s.host.o.Replay != ReplayOnce || ctx.Err() != nil || len(extra) > 0 {
		return result, err
	}
	died := result.Reason
	r.OnQueued = nil // it was called
	if result, err = s.once(ctx, r); err != nil {
		return result, err
	}
	result.Reason = "the code was run a second time, because the first kernel was lost: " + died
	result.Text = sinks.BuildText(result)
	return result, nil
}

// once makes one call.
func (s *Session) once(ctx context.Context, r Request, extra ...sinks.Sink) (messages.Result, error) {
	exec := messages.Execute{
		ID: cmp.Or(r.ID, messages.NewID()), Key: s.key, Owner: r.Owner, Cells: r.Cells, Timeout: r.Timeout, Reset: r.Reset, Mode: r.Mode, Env: r.Env, CallEnv: r.CallEnv,
		AllowStdin: r.AllowStdin || r.Input != nil, InputTimeout: cmp.Or(r.InputTimeout, s.host.o.InputTimeout), ResetNames: r.ResetNames, Count: r.Count, Comms: r.Comms, Introspect: r.introspect,
	}
	began := s.host.begin(&exec)
	if exec.Mode == "" {
		exec.Mode = s.host.o.KernelMode
	}
	if r.Reset {
		s.forgetCopy()
	}
	err := s.err
	if err == nil && ctx == nil {
		err = errNoContext
	}
	if err == nil {
		err = r.check()
	}
	if err == nil && r.AllowStdin && r.Input == nil && len(extra) == 0 {
		err = &RequestError{"allow_stdin", "the questions would go unheard: use Session.Stream, or set Request.Input"}
	}
	if err == nil && r.ID != "" {
		if _, used := s.host.ids.LoadOrStore(r.ID, struct{}{}); used {
			err = &RequestError{"id", fmt.Sprintf("another call has the id %s; name this one otherwise, or leave that to the host", r.ID)}
		} else {
			defer s.host.ids.Delete(r.ID)
		}
	}
	leave, begin, owner, enterErr := s.enter()
	if err == nil {
		err = enterErr
	}
	defer leave()
	if err != nil {
		return refused(exec, err), err
	}
	exec.Owner = cmp.Or(exec.Owner, owner)
	return s.host.perform(ctx, call{
		gateway: s.gateway(), exec: exec, began: began, onQueued: r.OnQueued, begin: begin,
		offer: &hostcall.Offer{Functions: r.HostFunctions, Input: r.Input, Primitives: s.host.registryOf(exec.Key), Memory: r.Memory},
	}, extra...)
}
