package coppice

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"runtime"
	"time"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/hostcall"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks"
	"github.com/coppice-run/coppice/supervisor"
)

// Session is a name for one interpreter state. It holds nothing itself: two
// Session values with the same key are the same session.
type Session struct {
	host        *Host
	key         messages.SessionKey
	gatewayName string // the gateway that serves it
	err         error  // why the key cannot be used
}

// SessionOption says more about the session that [Host.Session] returns.
type SessionOption func(*messages.SessionKey)

// In is the session's working directory; a relative one is relative to that of this
// process. Each directory has a state of its own: the same name in another directory
// is another session. "", as without In: the working directory of this process.
func In(dir string) SessionOption { return func(key *messages.SessionKey) { key.Cwd = dir } }

// Session returns the session of this name. Nothing is started: its first call does
// that. A working directory that is not there is reported by the first call. Any
// goroutine may call it.
func (h *Host) Session(name string, options ...SessionOption) *Session {
	key := messages.SessionKey{Session: name}
	for _, o := range options {
		o(&key)
	}
	cwd, err := cleanCwd(key.Cwd)
	key.Cwd = cwd
	return &Session{host: h, key: key, gatewayName: h.backend.Name(), err: err}
}

func (s *Session) gateway() supervisor.Ref { return s.host.system.Ref(s.gatewayName) }

// Key returns the session's key with its absolute working directory.
func (s *Session) Key() messages.SessionKey { return s.key }

// Execute runs the request's cells in the session's kernel, which is started if
// there is none, and returns when the call has ended. When ctx ends first, the
// call is interrupted and the result says cancelled, or timeout for a deadline
// of ctx; Execute waits for that result, for no longer than the interrupt's
// grace, the end of the output, and 30 s for sinks that take results (the audit log).
//
// The error is a *RequestError, ErrClosed after Shutdown, that of a ctx which had
// ended before, or a *[messages.NotStartedError] when no kernel took the call, which
// matches [messages.ErrOverloaded] when there was no place: nothing ran then, and the
// result says not_started. What became of code that ran is the result's to say:
// [messages.Result.Err] is nil only for code that ran to its end.
func (s *Session) Execute(ctx context.Context, r Request) (messages.Result, error) {
	result, err := s.execute(ctx, r)
	if err == nil && result.Outcome == messages.OutcomeNotStarted {
		err = result.Err()
	}
	return result, err
}

// Stream is Execute with its events as they happen; the last one is a
// messages.Final. A consumer that is slow holds the output back, not the
// kernel's memory; one that leaves the loop interrupts the call. When the
// request could not be made the only element is the error.
func (s *Session) Stream(ctx context.Context, r Request) iter.Seq2[messages.Event, error] {
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
				e.result, e.err = s.execute(ctx, r, stream)
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
	result.Text = sinks.BuildText(result, max(cmp.Or(r.Timeout, s.host.o.Timeout), 0))
	return result, nil
}

// once makes one call.
func (s *Session) once(ctx context.Context, r Request, extra ...sinks.Sink) (messages.Result, error) {
	exec := messages.Execute{
		ID: messages.NewID(), Key: s.key, Owner: r.Owner, Cells: r.Cells, Timeout: r.Timeout, Reset: r.Reset, Mode: r.Mode, Env: r.Env,
		AllowStdin: r.AllowStdin || r.Input != nil, InputTimeout: cmp.Or(r.InputTimeout, s.host.o.InputTimeout), ResetNames: r.ResetNames, Count: r.Count, Introspect: r.introspect,
	}
	if exec.Timeout == 0 {
		exec.Timeout = s.host.o.Timeout
	}
	exec.Timeout = max(exec.Timeout, 0) // NoTimeout
	if exec.Mode == "" {
		exec.Mode = s.host.o.KernelMode
	}
	if r.Reset {
		s.forgetCopy()
	}
	begin := time.Now()
	if exec.Timeout > 0 {
		exec.Deadline = begin.Add(exec.Timeout)
	}
	err := s.err
	if err == nil && ctx == nil {
		err = errNoContext
	}
	if err == nil {
		err = r.check()
	}
	if err == nil && r.AllowStdin && r.Input == nil && len(extra) == 0 {
		err = &RequestError{"allow_stdin", "nobody would hear of the questions: use Session.Stream, or set Request.Input"}
	}
	if err != nil {
		return s.refused(exec, err), err
	}
	out, err := s.host.hub.Open(ctx, exec, extra...)
	if err != nil {
		if ctx.Err() == nil {
			err = ErrClosed // the sinks end with the host
		}
		return s.refused(exec, err), err
	}
	defer out.Close()
	calls := s.host.calls.Calls(exec, hostcall.Offer{Functions: r.HostFunctions, Input: r.Input, Primitives: s.host.registryOf(exec.Key), Memory: r.Memory})
	exec.Out, exec.HostCalls = out, calls

	_, reply, err := supervisor.Begin[messages.Result](s.gateway(), exec)
	if err != nil {
		return s.refused(exec, ErrClosed), ErrClosed
	}
	if r.OnQueued != nil {
		r.OnQueued()
	}
	result, err := reply.Wait(ctx)
	if err != nil && ctx.Err() != nil {
		cause := messages.CauseCancelled
		if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			cause = messages.CauseTimeout
		}
		s.gateway().Tell(messages.Interrupt{Key: s.key, Exec: exec.ID, Cause: cause})
		result, err = reply.Wait(context.WithoutCancel(ctx))
	}
	if err != nil {
		return s.refused(exec, ErrClosed), ErrClosed
	}
	calls.Ended(result.Outcome)
	result.Duration = time.Since(begin)
	result.Text = sinks.BuildText(result, limitOf(ctx, exec, begin))
	result = s.host.limit(result, s.host.o.Output.tokens())
	// A sink that does not return must not hold a result: it has as long as the
	// end of a call's output has.
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishWait)
	defer cancel()
	if err := out.Finish(late, result); err != nil {
		s.host.o.Logger.Error("a sink did not take the result in time", "exec", exec.ID, "err", err)
	}
	return result, nil
}

// finishWait bounds the wait for sinks that take results.
const finishWait = 30 * time.Second

// limitOf is the time that a call had: its own timeout, or what its context left of
// that; 0 when nothing bounded it.
func limitOf(ctx context.Context, exec messages.Execute, begin time.Time) time.Duration {
	limit := exec.Timeout
	if at, ok := ctx.Deadline(); ok && (limit == 0 || at.Sub(begin) < limit) {
		limit = max(at.Sub(begin), time.Nanosecond)
	}
	return limit
}

// refused is the result of a call that was not made.
func (s *Session) refused(exec messages.Execute, err error) messages.Result {
	why := messages.RefusedRequest
	if errors.Is(err, ErrClosed) {
		why = messages.RefusedDraining
	}
	r := messages.NotStarted(exec, "", why, err.Error())
	r.Text = sinks.BuildText(r, exec.Timeout)
	return r
}

// Interrupt stops what runs in the session, as Ctrl-C would; the session is
// kept. Calls that wait are not touched. It returns when the request was
// handed over; the interrupted call's result tells when it has stopped.
func (s *Session) Interrupt(context.Context) error {
	if !s.gateway().Tell(messages.Interrupt{Key: s.key, Cause: messages.CauseCancelled}) {
		return ErrClosed
	}
	return nil
}

// SubmitInput answers the question with this id, which a messages.InputRequest
// of one of the session's calls carries. Exactly one answer is accepted; the
// status says what became of this one. That it was accepted does not promise
// that the code lived to read it.
//
// The error is a *RequestError for a value that is no line.
func (s *Session) SubmitInput(_ context.Context, id, value string) (messages.InputStatus, error) {
	value, err := hostcall.Line(value)
	if err != nil {
		return "", &RequestError{"value", err.Error()}
	}
	return s.host.calls.Submit(&s.key, id, value), nil
}

// SubmitInput is Session.SubmitInput for a host that knows the id of a question
// and not the session that asked.
func (h *Host) SubmitInput(_ context.Context, id, value string) (messages.InputStatus, error) {
	value, err := hostcall.Line(value)
	if err != nil {
		return "", &RequestError{"value", err.Error()}
	}
	return h.calls.Submit(nil, id, value), nil
}

// Reset ends the session's kernel; the next call, or one that waits already,
// gets a new one. A running call is cancelled.
func (s *Session) Reset(ctx context.Context) error {
	s.forgetCopy()
	return s.ask(ctx, messages.Reset{Key: s.key})
}

// Close ends the session's kernel and forgets the session. A running call is
// cancelled, waiting ones are not started.
func (s *Session) Close(ctx context.Context) error {
	s.forgetCopy()
	if b, ok := can[kernel.Keeper](s.host); ok {
		b.Closing(s.key)
	}
	return s.ask(ctx, messages.Close{Key: s.key})
}

// Pin exempts the session from eviction, or ends the exemption.
func (s *Session) Pin(ctx context.Context, pinned bool) error {
	return s.ask(ctx, messages.Pin{Key: s.key, Pinned: pinned})
}

func (s *Session) ask(ctx context.Context, msg any) error {
	if s.err != nil {
		return s.err
	}
	_, err := supervisor.Ask[bool](ctx, s.gateway(), msg)
	if errors.Is(err, supervisor.ErrNoProcess) || errors.Is(err, supervisor.ErrGone) {
		return ErrClosed
	}
	return err
}
