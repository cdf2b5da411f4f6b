package coppice

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/eventlog"
	"github.com/coppice-run/coppice/internal/hostcall"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks"
	"github.com/coppice-run/coppice/supervisor"
)

// ErrForgotten is the error of a [KeptCall] that was forgotten.
var ErrForgotten = errors.New("what was kept of the call was forgotten")

// KeptCall is the last call of a session that an earlier host has left: it goes on here,
// or had ended there, when it is told once more, since no one knows whether its result had
// reached the one who asked. Any goroutine may use it.
type KeptCall struct {
	// ID is what the call is called, Key the session, Owner who made it.
	ID    string
	Key   messages.SessionKey
	Owner string
	// Cells are those of the call; none when it is lost.
	Cells []messages.Cell

	exec   messages.Execute
	lost   string
	cancel context.CancelFunc
	ctx    context.Context
	log    *eventlog.Log
	done   chan struct{} // closed with result written
	result messages.Result
}

// Result returns the result of the call, when it has ended. Cells that had ended in the
// earlier host have their results, too. It is lost when the session was; the error is that
// of ctx.
func (k *KeptCall) Result(ctx context.Context) (messages.Result, error) {
	select {
	case <-k.done:
		return k.result, nil
	case <-ctx.Done():
		return messages.Result{}, context.Cause(ctx)
	}
}

// Events yields the events of the call whose numbers are larger than after, in order, and
// waits for further ones; the last is a messages.Final. An event has the number that it had
// in the earlier host. The error is that of ctx, or [ErrForgotten].
func (k *KeptCall) Events(ctx context.Context, after uint64) iter.Seq2[messages.Event, error] {
	const batch = 64 << 10
	return func(yield func(messages.Event, error) bool) {
		for {
			entries, ended, err := k.log.Read(after, batch)
			for _, data := range entries {
				after++
				e, err := messages.ParseEvent(data)
				if !yield(e, err) || err != nil {
					return
				}
			}
			if errors.Is(err, eventlog.ErrAhead) { // what the earlier host had handed on is still being read
				n, _, _ := k.log.Size()
				select {
				case <-k.done:
				default:
					if err = k.log.Wait(ctx, n); err == nil {
						continue
					}
				}
			}
			if err == nil && !ended && len(entries) == 0 {
				err = k.log.Wait(ctx, after)
			}
			switch {
			case errors.Is(err, eventlog.ErrEnded):
				yield(nil, ErrForgotten)
				return
			case err != nil:
				yield(nil, err)
				return
			case ended:
				return
			}
		}
	}
}

// Cancel interrupts the call.
func (k *KeptCall) Cancel() { k.cancel() }

// keep appends an event to the log of the call.
func (k *KeptCall) keep(e messages.Event, to func(func(uint64) ([]byte, error)) error) error {
	return to(func(n uint64) ([]byte, error) {
		return messages.AppendEvent(nil, e.At(messages.Position{Seq: n, Cell: e.Pos().Cell}))
	})
}

// end writes the result down.
func (k *KeptCall) end(r messages.Result) {
	k.result = r
	_ = k.keep(messages.Final{Position: messages.Position{Cell: -1}, Result: r}, k.log.Finish) // the result is there all the same
	close(k.done)
}

// keptSink takes the events of a call for who asks for them.
type keptSink struct{ k *KeptCall }

func (s keptSink) Consume(_ context.Context, e messages.Event) error {
	err := s.k.keep(e, s.k.log.Append)
	if errors.Is(err, eventlog.ErrEnded) {
		return sinks.ErrConsumerGone
	}
	return err
}
func (keptSink) Flush(context.Context) error { return nil }
func (keptSink) Close() error                { return nil }

// nowhere takes the output of a call that has none.
type nowhere struct{}

func (nowhere) Emit(context.Context, messages.Event) error { return nil }
func (nowhere) Flush(context.Context) messages.Output {
	return messages.Output{Cells: []messages.CellOutput{}}
}

// keptCalls is what an earlier host has left.
type keptCalls struct {
	all     []kernel.Inherited // until goOn; not changed
	running sync.WaitGroup     // the goroutines that take sessions over; close joins them

	mu    sync.Mutex
	calls []*KeptCall // guarded by mu
}

// takeOverKept takes over what an earlier host has left, once it has.
func (h *Host) takeOverKept(ctx context.Context) error {
	if h.o.KeepSessions && h.o.AwaitKept != nil {
		if err := h.o.AwaitKept(ctx); err != nil {
			return fmt.Errorf("wait for the end of an earlier host: %w", err)
		}
	}
	if err := h.inherit(ctx); err != nil {
		return err
	}
	h.kept.goOn(h)
	return nil
}

// inherit takes over what an earlier host has left.
func (h *Host) inherit(ctx context.Context) error {
	heir, is := can[kernel.Heir](h)
	if !is {
		return nil
	}
	all, err := heir.Inherit(ctx)
	if err != nil {
		return fmt.Errorf("take over the sessions of an earlier host: %w", err)
	}
	h.kept.all = all
	for _, one := range all {
		if one.Call == nil {
			continue
		}
		k := &KeptCall{
			ID: one.Call.ID, Key: one.Key, Owner: one.Call.Owner, Cells: one.Call.Cells, exec: *one.Call, lost: one.Lost,
			log: eventlog.New(eventlog.Options{}), done: make(chan struct{}),
		}
		if one.Call.Timeout > 0 { // the time without a host is not the call's
			k.exec.Deadline = time.Now().Add(max(one.Call.Deadline.Sub(one.Seen), time.Second))
		}
		k.exec.Resumed, k.exec.Reset = true, false                 // it began anew when it began
		k.ctx, k.cancel = context.WithCancel(context.Background()) // Cancel ends it, or the call
		h.kept.calls = append(h.kept.calls, k)
		h.ids.Store(k.ID, struct{}{})
	}
	return nil
}

// goOn begins to take the sessions over: each becomes a kernel, and its call goes on. When
// it returns, each has its place, so that a call that is made from then on comes after.
func (c *keptCalls) goOn(h *Host) {
	calls := map[messages.SessionKey]*KeptCall{}
	for _, k := range c.calls {
		calls[k.Key] = k
	}
	var placed sync.WaitGroup
	for _, one := range c.all {
		placed.Add(1)
		queued := sync.OnceFunc(placed.Done)
		c.running.Go(func() { // ends with the call, at the latest with the tree
			defer queued()
			h.takeOver(one, calls[one.Key], queued)
		})
	}
	c.all = nil
	placed.Wait()
}

// takeOver takes one session over. It calls queued when that has its place.
func (h *Host) takeOver(one kernel.Inherited, k *KeptCall, queued func()) {
	var result messages.Result
	var err error
	switch {
	case one.Lost != "" && k != nil:
		result = lostCall(k)
	case k != nil:
		result, err = h.perform(k.ctx, call{
			gateway: h.gateway(), exec: k.exec, began: time.Now(), offer: &hostcall.Offer{Primitives: h.registryOf(one.Key)},
			onQueued: queued,
		}, keptSink{k})
	case one.Lost == "":
		result, err = h.touch(one.Key, firstOf(one.Owners), queued)
	}
	if k != nil && err == nil && result.Outcome == messages.OutcomeNotStarted { // an earlier host may have started it
		err = result.Err()
		k.lost = "what an earlier host had begun could not be gone on with: " + cmp.Or(result.Reason, err.Error())
		result = lostCall(k)
	}
	if k != nil {
		k.cancel()
		k.end(result)
		h.ids.Delete(k.ID)
	}
	if err == nil && one.Lost == "" && (result.Outcome == messages.OutcomeNotStarted || result.Outcome == messages.OutcomeLost) {
		err = result.Err()
	}
	if err != nil {
		if heir, is := can[kernel.Heir](h); is && !errors.Is(err, ErrClosed) {
			h.o.Logger.Warn("a session of an earlier host could not be gone on with, and ends", "session", one.Key.String(), "err", err)
			heir.Disown(context.Background(), one.Key)
		}
		return
	}
	if one.Lost == "" && len(one.Owners) > 0 {
		for _, owner := range one.Owners {
			_, _ = h.touch(one.Key, owner, queued) // one who does not get a place has none to lose
		}
	}
}

func firstOf(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// touch makes a call without cells of a session, and calls queued when it has its place.
func (h *Host) touch(key messages.SessionKey, owner string, queued func()) (messages.Result, error) {
	exec := messages.Execute{ID: messages.NewID(), Key: key, Owner: owner, Mode: messages.ModeSession, Out: nowhere{}, Cells: []messages.Cell{}}
	h.begin(&exec)
	_, reply, err := supervisor.Begin[messages.Result](h.gateway(), exec)
	if err != nil {
		return messages.Result{}, ErrClosed
	}
	queued()
	result, err := reply.Wait(context.Background()) // it ends with the tree at the latest
	if err != nil {
		return result, ErrClosed
	}
	return result, nil
}

// lostCall is the result of a call whose session is lost.
func lostCall(k *KeptCall) messages.Result {
	r := messages.Result{
		Outcome: messages.OutcomeLost, State: messages.StateLost, Session: k.Key.Session, Cwd: k.Key.Cwd, Exec: k.ID, Reason: k.lost,
		Cells: messages.Pending(k.Cells),
	}
	r.Text = sinks.BuildText(r)
	return r
}

// close forgets all.
func (c *keptCalls) close() {
	c.mu.Lock()
	calls := c.calls
	c.calls = nil
	c.mu.Unlock()
	for _, k := range calls {
		k.cancel()
	}
	c.running.Wait()
	for _, k := range calls {
		_ = k.log.Close() // a temporary file
	}
}

// Kept returns the last calls of the sessions that an earlier host has left
// (Options.KeepSessions), both those that continue and those that had ended. They are there until
// [Host.Forget], or until the host ends.
func (h *Host) Kept() []*KeptCall {
	h.kept.mu.Lock()
	defer h.kept.mu.Unlock()
	return slices.Clone(h.kept.calls)
}

// Forget drops what is kept of a call, now or when it has ended.
func (h *Host) Forget(k *KeptCall) {
	h.kept.mu.Lock()
	h.kept.calls = slices.DeleteFunc(h.kept.calls, func(other *KeptCall) bool { return other == k })
	h.kept.mu.Unlock()
	_ = k.log.Close() // a temporary file
}
