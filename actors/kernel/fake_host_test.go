package kernel_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/messages"
)

// answer is the answer that an interpreter got to a question.
type answer struct {
	id string
	messages.InputAnswer
}

// host obeys what reaches the host: ask DURATION (a question that is answered
// after that time), try ask DURATION (which goes on without an answer), call
// NAME, both NAME,NAME (at the same time), leave NAME (and not wait for it).
func (i *fakeInterp) host(ctx context.Context, r kernel.CellRequest, emit func(context.Context, messages.Event) error, word, rest string) (*kernel.CellReply, error) {
	switch word {
	case "ask", "try":
		return i.ask(ctx, emit, strings.TrimPrefix(rest, "ask "), word == "try")
	case "call":
		return i.calls(ctx, r, emit, rest)
	case "both":
		return i.calls(ctx, r, emit, strings.Split(rest, ",")...)
	case "leave":
		go func() { i.left <- r.Call(ctx, messages.HostCall{Kind: messages.CallTool, Name: rest}) }()
		return nil, nil
	}
	return nil, nil
}

// ask puts a question. Its id is the same in every cell that asks so, so that an answer that
// comes too late would be taken for that of the next one.
func (i *fakeInterp) ask(ctx context.Context, emit func(context.Context, messages.Event) error, prompt string, caught bool) (*kernel.CellReply, error) {
	if err := emit(ctx, messages.InputRequest{ID: "q" + prompt, Prompt: prompt}); err != nil {
		return nil, err
	}
	over, told := make(chan time.Time), make(chan answer, 1)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case a := <-i.answers:
			told <- a
			close(over)
		case <-stop:
		}
	}()
	if reply, err := i.until(ctx, over); reply != nil || err != nil {
		return reply, err
	}
	a := <-told
	if a.Status == messages.InputAccepted {
		return nil, emit(ctx, messages.Stream{Name: messages.StdoutStream, Text: a.Value})
	}
	if caught {
		return nil, nil
	}
	return &kernel.CellReply{Error: &messages.ErrorDetails{Name: "InputTimeout"}}, nil
}

// calls makes calls of the host at the same time and waits for all of them, as
// code does: an interrupt gives them up.
func (i *fakeInterp) calls(ctx context.Context, r kernel.CellRequest, emit func(context.Context, messages.Event) error, names ...string) (*kernel.CellReply, error) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	results := make(chan messages.HostResult, len(names))
	over := make(chan time.Time)
	for _, name := range names {
		all.Go(func() { results <- r.Call(ctx, messages.HostCall{Kind: messages.CallTool, Name: name}) })
	}
	go func() { all.Wait(); close(over) }()
	if reply, err := i.until(ctx, over); reply != nil || err != nil {
		return reply, err
	}
	for range names {
		if result := <-results; result.Error != nil {
			return &kernel.CellReply{Error: &messages.ErrorDetails{Name: result.Error.Type, Message: result.Error.Message}}, nil
		} else if err := emit(ctx, messages.Stream{Name: messages.StdoutStream, Text: string(result.Value)}); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// fakeHostCalls answers a question after the time that its prompt says ("never":
// when its idle time is over), and runs functions: "wait 1s" and "work 1s" take
// that long, the first of them pauses; "hang" does not look at its context for a
// moment, "fail" fails. Its lists may be read when the call has ended.
type fakeHostCalls struct {
	mu       sync.Mutex
	asked    []messages.InputRequest
	called   []messages.HostCall
	given    int     // answers that questions got
	open     int     // questions and calls that are not over
	most     int     // of them at the same time
	endedFor []error // why contexts ended before their time
}

func (d *fakeHostCalls) enter(note func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	note()
	d.open++
	d.most = max(d.most, d.open)
}

// leave ends a question or call; given says that it ended well.
func (d *fakeHostCalls) leave(ctx context.Context, well bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open--
	if well {
		d.given++
	} else {
		d.endedFor = append(d.endedFor, context.Cause(ctx))
	}
}

// waits returns how many questions and calls are not over.
func (d *fakeHostCalls) waits() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.open
}

func (d *fakeHostCalls) Ask(ctx context.Context, q messages.InputRequest) <-chan messages.InputAnswer {
	d.enter(func() { d.asked = append(d.asked, q) })
	told := make(chan messages.InputAnswer, 1)
	idle := time.Duration(q.IdleTimeoutMS) * time.Millisecond
	after, err := time.ParseDuration(q.Prompt)
	a := messages.InputAnswer{Status: messages.InputAccepted, Value: "answered"}
	if err != nil {
		after, a = idle, messages.InputAnswer{Status: messages.InputExpired, Idle: idle}
	}
	go func() {
		select {
		case <-time.After(after):
			d.leave(ctx, true)
		case <-ctx.Done():
			d.leave(ctx, false)
			a = messages.InputAnswer{Status: messages.InputExpired}
		}
		told <- a
	}()
	return told
}

func (d *fakeHostCalls) Pauses(c messages.HostCall) bool { return strings.HasPrefix(c.Name, "wait") }

func (d *fakeHostCalls) Call(ctx context.Context, c messages.HostCall, say func(messages.HostEvent)) messages.HostResult {
	d.enter(func() { d.called = append(d.called, c) })
	word, rest, _ := strings.Cut(c.Name, " ")
	switch word {
	case "fail":
		d.leave(ctx, true)
		return messages.HostResult{Error: &messages.HostError{Type: "KeyError", Message: "no"}}
	case "hang":
		<-ctx.Done()
		<-time.After(100 * time.Millisecond) // in the bubble's time: a moment after ctx has ended
		d.leave(ctx, false)
		return messages.HostResult{Error: &messages.HostError{Type: "CancelledError"}}
	}
	say(messages.HostEvent{Call: c.ID, Name: "begun"})
	after, _ := time.ParseDuration(rest)
	select {
	case <-time.After(after):
		d.leave(ctx, true)
		return messages.HostResult{Value: messages.RawJSON(fmt.Sprintf("%q", c.Name))}
	case <-ctx.Done():
		d.leave(ctx, false)
		return messages.HostResult{Error: &messages.HostError{Type: "CancelledError"}}
	}
}

var _ messages.HostCalls = (*fakeHostCalls)(nil)
