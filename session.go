package coppice

import (
	"cmp"
	"context"
	"errors"
	"iter"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/hostcall"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks"
	"github.com/coppice-run/coppice/supervisor"
)

// Session is a name for one interpreter state. It holds nothing itself: two
// Session values with the same key are the same session.
type Session struct {
	host *Host
	key  messages.SessionKey
	err  error // why the key cannot be used
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
	return &Session{host: h, key: key, err: err}
}

func (s *Session) gateway() supervisor.Ref { return s.host.gateway() }

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
	result.Text = sinks.BuildText(result, max(cmp.Or(r.Timeout, s.host.o.Timeout), 0))
	return result, nil
}

// once makes one call.
func (s *Session) once(ctx context.Context, r Request, extra ...sinks.Sink) (messages.Result, error) {
	exec := messages.Execute{
		ID: messages.NewID(), Key: s.key, Owner: r.Owner, Cells: r.Cells, Timeout: r.Timeout, Reset: r.Reset, Mode: r.Mode, Env: r.Env,
		AllowStdin: r.AllowStdin || r.Input != nil, InputTimeout: cmp.Or(r.InputTimeout, s.host.o.InputTimeout), ResetNames: r.ResetNames, Count: r.Count, Introspect: r.introspect,
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
		err = &RequestError{"allow_stdin", "nobody would hear of the questions: use Session.Stream, or set Request.Input"}
	}
	if err != nil {
		return refused(exec, err), err
	}
	return s.host.perform(ctx, call{
		gateway: s.gateway(), exec: exec, began: began, onQueued: r.OnQueued,
		offer: &hostcall.Offer{Functions: r.HostFunctions, Input: r.Input, Primitives: s.host.registryOf(exec.Key), Memory: r.Memory},
	}, extra...)
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
