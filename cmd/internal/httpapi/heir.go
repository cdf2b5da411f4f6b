package httpapi

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/messages"
)

// goOn makes an execution of a call that a server before this one has left, with its id, and
// its events with their numbers.
func (a *API) goOn(k *coppice.KeptCall) {
	info := client.Execution{ID: k.ID, Kind: client.KindCall, Session: k.Key.Session, Cwd: k.Key.Cwd, Owner: k.Owner, Title: titleOf(k.Cells), Cells: len(k.Cells)}
	x, _, err := a.add(trace.SpanContext{}, info, "", func(ctx context.Context, x *execution, queued func()) (messages.Result, messages.RawJSON, error) {
		x.follows.Store(true)
		queued()
		return a.follows(ctx, x, k)
	})
	if err != nil {
		a.o.Logger.Warn("an execution of the server before this one is not listed", "execution", k.ID, "err", err)
		return
	}
	<-x.settled
}

// follows is the goroutine of such an execution.
func (a *API) follows(ctx context.Context, x *execution, k *coppice.KeptCall) (messages.Result, messages.RawJSON, error) {
	defer a.o.Host.Forget(k)
	defer context.AfterFunc(ctx, k.Cancel)()
	all := context.WithoutCancel(ctx) // one that is cancelled has a result, too
	for e, err := range k.Events(all, 0) {
		if err != nil {
			return messages.Result{}, nil, err
		}
		if _, end := e.(messages.Final); !end {
			x.event(e, a.o.Logger)
		}
	}
	result, err := k.Result(all)
	return result, nil, err
}

// same reports whether an execution was asked for in these words. Of one of an earlier
// server it is known what ran, and not how it was asked for.
func (x *execution) same(info client.Execution, asked string) bool {
	if x.asked != "" {
		return x.asked == asked
	}
	own := x.describe(false)
	return own.Kind == info.Kind && own.Session == info.Session && own.Cwd == info.Cwd && own.Title == info.Title && own.Cells == info.Cells
}

// reach waits, of an execution of an earlier server, for the event with this number, which
// that one has handed on and this one may still have to read.
func (x *execution) reach(ctx context.Context, number uint64) {
	for x.follows.Load() {
		n, _, _ := x.events().Size()
		if n >= number || x.hasEnded() {
			return
		}
		wait, cancel := context.WithTimeout(ctx, time.Second)
		err := x.events().Wait(wait, n)
		cancel()
		if err != nil && ctx.Err() != nil {
			return
		}
	}
}
