package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/trace"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/internal/eventlog"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks"
)

// reserve is what a log has for events that are no output, beyond its bound.
const reserve = 16 << 20

// task runs an execution, in its goroutine. It calls queued when the execution
// has its place; an error before that refuses the execution, one after it is in
// the result.
type task func(ctx context.Context, x *execution, queued func()) (messages.Result, messages.RawJSON, error)

// begin starts an execution, or returns the one that has this id and was asked
// for in the same words. It returns when the execution has its place in its
// session's queue, so that one that is begun after that comes later.
func (a *API) begin(ctx context.Context, info client.Execution, asked any, run task) (x *execution, mine bool, err error) {
	if info.ID == "" {
		info.ID = messages.NewID()
	}
	if err := checkID(info.ID); err != nil {
		return nil, false, err
	}
	run = a.inTurn(Entered(ctx), run)
	text, err := json.Marshal(asked)
	if err != nil {
		return nil, false, fmt.Errorf("keep the request: %w", err)
	}
	x, mine, err = a.add(trace.SpanContextFromContext(ctx), info, string(text), run)
	if err != nil {
		return nil, false, err
	}
	select {
	case <-x.settled:
		return x, mine, x.refused
	case <-ctx.Done():
		return nil, false, context.Cause(ctx)
	}
}

func (a *API) add(parent trace.SpanContext, info client.Execution, asked string, run task) (x *execution, mine bool, err error) {
	return a.addTo(a.newLog(), parent, info, asked, run)
}

// addTo is add with a log that may have events.
func (a *API) addTo(log *eventlog.Log, parent trace.SpanContext, info client.Execution, asked string, run task) (x *execution, mine bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return nil, false, coppice.ErrClosed
	}
	if other := a.table[info.ID]; other != nil {
		if !other.same(info, asked) {
			return nil, false, fmt.Errorf("another execution has the id %s: %w", info.ID, errConflict)
		}
		return other, false, nil
	}
	if n := a.runningLocked(); n >= a.o.MaxRunning {
		return nil, false, fmt.Errorf("%w: %d executions run or wait", errOverloaded, n)
	}
	ctx, cancel := context.WithCancel(trace.ContextWithSpanContext(a.life, parent)) // it outlives the request
	x = &execution{
		log:    log,
		cancel: cancel, ended: make(chan struct{}), settled: make(chan struct{}), returned: make(chan struct{}), asked: asked, info: info, most: a.o.LogMax,
	}
	x.code = codeOf(x.cells())
	x.info.State = client.Running
	if x.info.Started.IsZero() { // else with an earlier server
		x.info.Started = time.Now()
	}
	a.table[info.ID] = x
	a.order = append(a.order, x)
	a.forgetLocked()
	a.running.Go(func() { // ends with the call, which ends with ctx; Close waits
		defer cancel()
		a.run(ctx, x, run)
	})
	return x, true, nil
}

func (a *API) newLog() *eventlog.Log {
	return eventlog.New(eventlog.Options{Dir: a.dir, Memory: a.o.LogMemory, Max: a.o.LogMax + reserve})
}

// run is the goroutine of an execution.
func (a *API) run(ctx context.Context, x *execution, run task) {
	queued := false
	result, report, err := run(ctx, x, func() {
		queued = true
		close(x.settled)
		a.changes.execution(x.describe(false))
	})
	if !queued {
		if err == nil {
			err = fmt.Errorf("the execution %s ended before it began", x.info.ID)
		}
		a.drop(x)
		x.refused = err
		close(x.settled)
		close(x.returned) // who waits for all of them has seen it in the table
		return
	}
	if err != nil {
		result = failed(result, err)
	}
	if result.Progress.Stop == messages.StopCancel && errors.Is(context.Cause(ctx), coppice.ErrClosed) {
		result.Progress.Stop = messages.StopShutdown // nobody has cancelled it
	}
	if !a.handing.Ends() {
		x.came, x.wanted = &result, ctx.Err() == nil
		close(x.returned)
		return
	}
	if result.Progress.Stop == messages.StopShutdown {
		a.stopped(&result)
	}
	x.finish(result, report, a.o.Logger)
	a.changes.execution(x.describe(false))
}

// stopped says of an execution that the end of the server has stopped what becomes of its
// variables, which its session still had.
func (a *API) stopped(r *messages.Result) {
	switch {
	case !r.Ran() || r.State == messages.StateLost:
	case a.o.Forgets:
		r.State, r.Restored, r.Reason = messages.StateLost, nil, r.Progress.By()
		r.Text = sinks.BuildText(*r)
	case r.Reason == "" && r.State == messages.StateKept:
		r.Reason = r.Progress.By() + ", which writes its sessions to disk as it ends"
	}
}

// failed is the result of an execution that failed beside its cells. Whether one of them
// ran is theirs to say: a notebook may have run that could not be saved.
func failed(result messages.Result, err error) messages.Result {
	if !result.Ran() && (result.Outcome == messages.OutcomeCancelled || result.Outcome == messages.OutcomeTimeout) &&
		(errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return result // it ended before it was sent, and says so
	}
	result.Reason, result.Text = err.Error(), strings.TrimPrefix(result.Text+"\n\n"+err.Error(), "\n\n")
	if !result.Ran() {
		result.Outcome, result.State, result.Text = messages.OutcomeNotStarted, "", err.Error()
		result.Progress.Reach = messages.ReachUnsent
	} else if result.Outcome == messages.OutcomeOK {
		result.Outcome = messages.OutcomeError
	}
	return result
}

// drop takes an execution out that was refused.
func (a *API) drop(x *execution) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.table, x.info.ID)
	a.order = slices.DeleteFunc(a.order, func(y *execution) bool { return x == y })
	x.close(a.o.Logger)
}

// untoldShare is how many times as many executions are kept whose end was shown to nobody yet.
const untoldShare = 16

// forgetLocked forgets executions that have ended: the oldest, when they are too many or
// their events too much, and those that are too old. a.mu is held.
func (a *API) forgetLocked() {
	kept, untold, size, old := 0, 0, int64(0), time.Now().Add(-a.o.KeepFor)
	for at, x := range slices.Backward(a.order) { // the newest first
		if !x.hasEnded() {
			continue
		}
		_, bytes, _ := x.events().Size()
		size += bytes
		fits := size <= a.o.KeepBytes && x.describe(false).Ended.After(old)
		switch {
		case kept+untold == 0, fits && kept < a.o.Keep && x.told.Load():
			kept++
			continue
		case fits && untold < untoldShare*a.o.Keep && !x.told.Load(): // somebody may be about to ask, or be reading still
			untold++
			continue
		}
		delete(a.table, x.info.ID)
		x.close(a.o.Logger)
		a.order[at] = nil
	}
	a.order = slices.DeleteFunc(a.order, func(x *execution) bool { return x == nil })
}

func (x *execution) hasEnded() bool {
	select {
	case <-x.ended:
		return true
	default:
		return false
	}
}

// runningLocked counts those that run or wait. a.mu is held.
func (a *API) runningLocked() int {
	n := 0
	for _, x := range a.order {
		if !x.hasEnded() {
			n++
		}
	}
	return n
}

// Running is how many executions run or wait. Any goroutine may call it.
func (a *API) Running() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.runningLocked()
}

// lookup returns an execution.
func (a *API) lookup(id string) (*execution, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forgetLocked()
	if x := a.table[id]; x != nil {
		return x, nil
	}
	return nil, fmt.Errorf("the server knows no execution %.80q: %w; the last %d that ended are kept, for %v at most", id, errNotFound, a.o.Keep, a.o.KeepFor)
}

// checkID refuses ids that no path can hold.
func checkID(id string) error {
	const most = 64
	for _, r := range id {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' {
			return badRequest{fmt.Sprintf("%.80q cannot be the id of an execution", id), "use letters, digits, - and _"}
		}
	}
	if len(id) > most {
		return badRequest{fmt.Sprintf("the id of an execution has %d bytes", len(id)), fmt.Sprintf("use at most %d", most)}
	}
	return nil
}

// checkName refuses names that no path can hold, and a request without one: two
// clients that leave it out do not mean the same session.
func checkName(name string) error {
	const most = 200
	if name == "" {
		return badRequest{"there is no session", `name it: {"session": "analysis"}; all who send that name share its variables`}
	}
	hint := fmt.Sprintf("use at most %d bytes without control characters and backslashes", most)
	if utf8.RuneCountInString(name) > most || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' }) {
		return badRequest{fmt.Sprintf("%.40q cannot be the name of a session", name), hint}
	}
	if len(name) > most {
		return unfit{fmt.Sprintf("%.40q cannot be the name of a session: it has %d bytes", name, len(name)), hint}
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." || part == "." {
			return unfit{fmt.Sprintf("%.40q cannot be the name of a session", name), "leave out the parts . and .."}
		}
	}
	return nil
}

// inTurn has a task run in a turn, if enter asks for one, and puts what became of its result.
func (a *API) inTurn(enter Enter, run task) task {
	if enter == nil {
		return run
	}
	return func(ctx context.Context, x *execution, queued func()) (messages.Result, messages.RawJSON, error) {
		turn, err := enter(ctx, x.info.ID)
		if err != nil {
			return messages.Result{}, nil, err
		}
		defer turn.End()
		x.mu.Lock()
		x.turn = turn
		x.mu.Unlock()
		defer context.AfterFunc(turn.Life(), x.cancel)()
		news := turn.News()
		if news != "" {
			x.event(messages.Notice{Code: "epoch", Text: news}, a.o.Logger)
		}
		started := false
		result, report, err := run(ctx, x, func() {
			started = true
			turn.Begun()
			queued()
		})
		if !started {
			return result, report, err
		}
		if err != nil {
			result = failed(result, err)
		}
		// Neither the caller who left nor the end of the turn's life ends this wait: it
		// says what became of the result.
		if err := turn.Answer(a.life); err != nil {
			return x.lose(a.newLog(), result, err, a.o.Logger), nil, nil
		}
		if news != "" {
			result.Notices = append(result.Notices, news)
		}
		x.mu.Lock()
		x.shown = math.MaxUint64
		x.mu.Unlock()
		return result, report, nil
	}
}

// Knows reports whether the server knows an execution. Any goroutine may call it.
func (a *API) Knows(id string) bool {
	_, err := a.lookup(id)
	return err == nil
}

// Untold is of how many executions that have ended since a time nobody has asked for the
// end yet. Any goroutine may call it.
func (a *API) Untold(since time.Time) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	untold := 0
	for _, x := range a.order {
		if x.hasEnded() && !x.told.Load() && x.describe(false).Ended.After(since) {
			untold++
		}
	}
	return untold
}
