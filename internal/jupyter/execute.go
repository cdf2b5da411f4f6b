package jupyter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/coppice-run/coppice/messages"
)

// ExecuteRequest is one piece of code to run.
type ExecuteRequest struct {
	Code string
	// Silent asks for no execution count, no history and no result; streams
	// come all the same.
	Silent bool
	// StoreHistory counts the execution and writes it to IPython's history,
	// which is one SQLite file for all kernels of a home directory and the
	// worst source of delays when there are many.
	StoreHistory bool
	// AllowStdin lets input() ask; without it, it raises StdinNotImplementedError.
	AllowStdin bool
	// Comms asks for the messages of widgets and the like, as [messages.Comm].
	Comms bool
	// ContinueOnError lets requests that wait in the kernel run after an error
	// of this one. This client never has two requests in a kernel.
	ContinueOnError bool
	// UserExpressions are evaluated after the code, by name. Their values come
	// with the reply, which no rate limit and no full queue can drop.
	UserExpressions map[string]string
	// Keep has a kernel that numbers what it sends hold what emit has not taken, also when it has
	// arrived, for a client that comes after this one ([Client.Attach]).
	Keep bool
	// Announce hears the id of the request before it is sent; its error ends Execute. It is called
	// once more when the request is sent again. nil: nobody does.
	Announce func(id string) error
	// Placed hears, before each output, the number of the message that it comes of, 0 for none.
	// nil: nobody does.
	Placed func(number int64)
}

// Execute runs code and returns when it has ended and every output was handed
// to emit, which may block for as long as it likes: what comes in the meantime
// waits in memory and on disk. emit is called from this goroutine; its error ends
// the delivery, and with [ErrEnough] Execute goes on without the rest of the
// output, which Incomplete tells. A nil emit drops the output.
//
// An output is a [messages.Stream], Display, ExecuteResult, ClearOutput, Error,
// InputRequest, which [Kernel.Input] answers, Comm, or Notice, with a code of this
// package. Its position is not set.
//
// ctx does not stop the code. When it ends, or when emit fails, Execute gives
// up and returns its cause or emit's error; the code runs on, its output is
// dropped, and Execute returns [ErrBusy] until it has ended.
//
// The error is a [*LostError] when the kernel was lost; outputs that came
// before were emitted. It is [ErrNoReply] when the code has ended and nothing
// can say how: an interrupt just as the code begins does that.
// With either, the reply holds what is known. It matches [ErrTooLong] when the code
// is longer than a server takes; nothing was run then.
func (k *Kernel) Execute(ctx context.Context, r ExecuteRequest, emit func(context.Context, messages.Event) error) (ExecuteReply, error) {
	if emit == nil {
		emit = func(context.Context, messages.Event) error { return nil }
	}
	for {
		reply, err := k.executeOnce(ctx, r, emit)
		if !errors.Is(err, errUnheard) {
			return reply, err
		}
	}
}

// maxRequest is the longest message that Tornado takes, the server below each of
// the Jupyter servers, in bytes; none of them sets another length.
const maxRequest = 10 << 20

// errUnheard says that a connection swallowed a request: the kernel has never
// seen it, so it may be sent again.
var errUnheard = errors.New("the kernel never got the request")

// executeOnce sends one request and sees it through.
func (k *Kernel) executeOnce(ctx context.Context, r ExecuteRequest, emit func(context.Context, messages.Event) error) (ExecuteReply, error) {
	x, err := k.begin(ctx, typeExecuteRequest, r.content(), r.settle)
	if err != nil {
		return ExecuteReply{}, err
	}
	return k.see(ctx, x, r.Placed, emit)
}

// settle gives an execution what the request says of it, before it is sent.
func (r ExecuteRequest) settle(x *execution) error {
	x.silent, x.comms, x.keeps = r.Silent, r.Comms, r.Keep
	if r.Announce != nil {
		return r.Announce(x.id)
	}
	return nil
}

// see sees an execution through.
func (k *Kernel) see(ctx context.Context, x *execution, placed func(int64), emit func(context.Context, messages.Event) error) (ExecuteReply, error) {
	defer x.spool.Close()
	raised, malformed, err := k.deliverAll(ctx, x, placed, emit)
	if err != nil {
		k.abandon(x)
		return ExecuteReply{}, err
	}
	return k.conclude(ctx, x, raised, malformed, emit)
}

// content is what is sent of the request.
func (r ExecuteRequest) content() executeContent {
	expressions := r.UserExpressions
	if expressions == nil {
		expressions = map[string]string{}
	}
	return executeContent{
		Code:            r.Code,
		Silent:          r.Silent,
		StoreHistory:    r.StoreHistory && !r.Silent,
		UserExpressions: expressions,
		AllowStdin:      r.AllowStdin,
		StopOnError:     !r.ContinueOnError,
	}
}

// begin registers an execution and sends its request. The gate keeps it apart from an
// interrupt that is on its way to the execution before.
//
// settle is called before it is sent; its error ends the attempt.
func (k *Kernel) begin(ctx context.Context, typ string, content any, settle func(*execution) error) (*execution, error) {
	if err := k.enter(ctx); err != nil {
		return nil, err
	}
	defer k.leave()
	id := k.newID()
	f, err := k.message(chanShell, typ, id, nil, content)
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	if len(f.data) > maxRequest {
		// The server would break the connection, for as often as the request comes.
		return nil, fmt.Errorf("%w: it has %d bytes, and %d is the most", ErrTooLong, len(f.data), maxRequest)
	}
	x := k.client.newExecution(id, replyType(typ))
	if err := k.free(); err != nil {
		return nil, err
	}
	if err := k.absorb(ctx); err != nil {
		return nil, err
	}
	if err := settle(x); err != nil {
		return nil, err
	}
	k.mu.Lock()
	switch {
	case k.lost != nil:
		err = k.lost
	default:
		x.mark, x.numbered = k.markLocked(), k.replays
		if x.keeps && !k.keeps { // else the kernel hears of it with the first confirmation
			k.keeps, x.recovery.confirm = true, true
		}
		k.holes.clear()
		k.exec = x
	}
	k.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if err := k.send(ctx, f); err != nil {
		// It was not sent, so nothing will ever end it.
		k.mu.Lock()
		k.endLocked(x)
		k.mu.Unlock()
		x.spool.Close()
		return nil, err
	}
	return x, nil
}

// free returns why no execution can begin. Only the holder of the gate may begin one,
// so nil stays true for it until the kernel is lost.
func (k *Kernel) free() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.lost != nil:
		return k.lost
	case k.exec != nil:
		return ErrBusy
	}
	return nil
}

// enter takes the gate.
func (k *Kernel) enter(ctx context.Context) error {
	if err := k.Err(); err != nil {
		return err
	}
	select {
	case k.gate <- struct{}{}:
		return nil
	case <-k.Done():
		return k.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// leave gives the gate back.
func (k *Kernel) leave() { <-k.gate }

// deliverAll hands the outputs of x to emit until there are no more. raised is
// the last error among them, malformed counts those that could not be read.
func (k *Kernel) deliverAll(ctx context.Context, x *execution, placed func(int64), emit func(context.Context, messages.Event) error) (raised *messages.ErrorDetails, malformed int, err error) {
	for {
		rec, err := x.spool.Get(ctx)
		if errors.Is(err, io.EOF) {
			return raised, malformed, nil
		}
		if err != nil {
			return nil, 0, err
		}
		one, err := splitRecord(rec)
		if err != nil {
			return nil, 0, err
		}
		out, err := decodeOutput(one.kind, one.id, one.content)
		if err != nil {
			malformed++
			out = messages.Notice{Code: NoticeMalformed, Text: "one output was left out: the kernel sent it in a form that cannot be read"}
		}
		if e, ok := out.(messages.Error); ok {
			raised = &e.ErrorDetails
		}
		if placed != nil {
			placed(one.number)
		}
		switch err := emit(ctx, out); {
		case errors.Is(err, ErrEnough):
			return raised, malformed, k.leaveOut(ctx, x)
		case err != nil:
			return nil, 0, err
		}
		k.note(x, one.number)
	}
}

// note notes that an output was taken.
func (k *Kernel) note(x *execution, number int64) {
	if !x.keeps {
		return
	}
	k.mu.Lock()
	x.noted = max(x.noted, number)
	k.mu.Unlock()
}

// leaveOut waits for the end of x without its output.
func (k *Kernel) leaveOut(ctx context.Context, x *execution) error {
	k.mu.Lock()
	x.abandoned, x.leftOut = true, true
	k.mu.Unlock()
	x.spool.Close()
	select {
	case <-x.ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// abandon ends the delivery of x, which may run on.
func (k *Kernel) abandon(x *execution) {
	k.mu.Lock()
	x.abandoned = true
	k.mu.Unlock()
	x.spool.Close()
}

// namesNone reports whether a reply says that something was raised, and not what: an
// ipykernel does so when showing the cell's value raised.
func namesNone(e messages.ErrorDetails) bool { return e.Name == "NoneType" && e.Message == "None" }

// conclude makes the reply of x, whose spool was drained: so it is over, and
// its fields do not change any more.
func (k *Kernel) conclude(ctx context.Context, x *execution, raised *messages.ErrorDetails, malformed int, emit func(context.Context, messages.Event) error) (ExecuteReply, error) {
	k.mu.Lock()
	done := *x
	k.mu.Unlock()

	if done.unheard && done.lost == nil {
		return ExecuteReply{}, errUnheard
	}
	r := ExecuteReply{Broken: done.breaks > 0}
	var pages []messages.Display
	var err error
	if done.replied {
		if r, pages, err = decodeReply(done.reply); err != nil {
			lost := &LostError{Reason: "it sent a reply that cannot be read", Err: err}
			k.lose(lost)
			return ExecuteReply{}, lost
		}
		r.Broken = done.breaks > 0
		if r.Error != nil && raised != nil && (raised.Name == r.Error.Name || namesNone(*r.Error)) {
			r.Error = raised // which says where it came from
		}
	}
	r.Duration = done.endedAt.Sub(done.begunAt)
	if done.noReply && done.lost == nil && k.late(&done, nil) && k.unbegun(&done) {
		return ExecuteReply{}, errUnheard
	}
	notices, incomplete := done.shortfall(malformed)
	r.Incomplete = incomplete
	told := r.Error
	if done.noReply {
		told = raised
	}
	if r.Stray = k.late(&done, told); r.Stray {
		notices = append(notices, messages.Notice{Code: NoticeStray, Text: strayText})
	}

	if err := emitTail(ctx, pages, notices, emit); err != nil {
		return ExecuteReply{}, err
	}
	switch {
	case done.lost != nil:
		r.Status, r.Error = "", raised
		return r, done.lost
	case done.noReply:
		r.Error = raised
		return r, ErrNoReply
	}
	if r.Exited {
		// The process ends by itself soon; a server that restarts it would let
		// the next execution run in an empty kernel.
		k.lose(&LostError{Reason: "its code asked for the end of the interpreter"})
	}
	return r, nil
}

// emitTail hands over what a reply holds to be shown, and what is to be said at the end.
func emitTail(ctx context.Context, pages []messages.Display, notices []messages.Event, emit func(context.Context, messages.Event) error) error {
	tail := make([]messages.Event, 0, len(pages)+len(notices))
	for _, p := range pages {
		tail = append(tail, p)
	}
	for _, o := range append(tail, notices...) {
		if err := emit(ctx, o); err != nil && !errors.Is(err, ErrEnough) {
			return err
		}
	}
	return nil
}

// shortfall says what is missing of the output of x, which is over: the notices
// that were not emitted yet, and all reasons in one sentence part.
func (x *execution) shortfall(malformed int) (notices []messages.Event, incomplete string) {
	var reasons []string
	if x.rateLimited {
		reasons = append(reasons, "the gateway's rate limit dropped output")
	}
	switch {
	case x.gapMessages > 0 && x.numbered:
		reasons = append(reasons, fmt.Sprintf("%d messages were lost on the way", x.gapMessages))
	case x.gapMessages > 0:
		reasons = append(reasons, fmt.Sprintf("up to %d messages were lost when the connection to the server broke", x.gapMessages))
	case x.gaps > 0:
		reasons = append(reasons, "the connection to the server broke, and output may be lost")
	}
	if x.leftOut {
		reasons = append(reasons, "the end of the output was left out, since it was not taken")
	}
	if malformed > 0 {
		reasons = append(reasons, fmt.Sprintf("%d outputs could not be read", malformed))
	}
	tell := func(code, text string) {
		reasons = append(reasons, text)
		notices = append(notices, messages.Notice{Code: code, Text: text})
	}
	if x.notKept > 0 {
		tell(NoticeNotKept, fmt.Sprintf("%d outputs could not be kept: %v", x.notKept, x.keepErr))
	}
	if x.dropped > 0 {
		tell(NoticeDropped, fmt.Sprintf("%d messages of the kernel never arrived", x.dropped))
	}
	if x.replied && !x.idle && x.lost == nil {
		tell(NoticeIncomplete, "the kernel's end-of-output mark was lost, and perhaps output before it")
	}
	return notices, strings.Join(reasons, "; ")
}
