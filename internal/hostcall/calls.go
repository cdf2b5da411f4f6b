package hostcall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coppice-run/coppice/agent/primitive"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// maxValue is the longest value of a host function, in bytes of JSON.
const maxValue = 8 << 20

// Calls serves the questions and host calls of one Execute; see
// [messages.HostCalls]. Its methods may be called from any goroutine; the fields are
// set before the call is made.
type Calls struct {
	host      *Host
	exec      messages.Execute
	offer     Offer
	functions map[string]Function
	// slots holds a token for every host call that runs.
	slots chan struct{}

	mu    sync.Mutex
	spent map[int]int // host calls by cell; guarded by mu
}

// Calls returns what serves one Execute. Those that have no function of their own
// share the table of the host.
func (h *Host) Calls(exec messages.Execute, o Offer) *Calls {
	c := &Calls{host: h, exec: exec, offer: o, functions: h.offered, slots: make(chan struct{}, h.o.MaxAtOnce), spent: map[int]int{}}
	if len(o.Functions) > 0 {
		c.functions = maps.Clone(h.offered)
		for _, f := range o.Functions {
			c.functions[f.Name] = f
		}
	}
	return c
}

// ByName is a table of functions by name.
func ByName(list []Function) map[string]Function {
	table := make(map[string]Function, len(list))
	for _, f := range list {
		table[f.Name] = f
	}
	return table
}

// Pauses says that the call's active time stands still while c runs.
func (d *Calls) Pauses(c messages.HostCall) bool {
	if c.Kind == messages.CallPrimitive {
		return d.offer.Primitives.Pauses(c.Name)
	}
	return c.Kind == messages.CallTool && d.functions[c.Name].Pause
}

// Call serves one host call; see messages.HostCalls.
func (d *Calls) Call(ctx context.Context, c messages.HostCall, say func(messages.HostEvent)) messages.HostResult {
	if err := d.spend(c.Cell); err != nil {
		return messages.HostResult{Error: err}
	}
	select {
	case d.slots <- struct{}{}:
		defer func() { <-d.slots }()
	case <-ctx.Done():
		return messages.HostResult{Error: interrupted(c.Name)}
	}
	serve, within, err := d.find(ctx, c)
	if err != nil {
		return messages.HostResult{Error: err}
	}
	if within > 0 { // it bounds a function that does not look at its context, too
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, within)
		defer cancel()
	}
	sink := &eventSink{say: say, call: c.ID}
	defer sink.close()
	ended := make(chan messages.HostResult, 1)
	d.host.running.start(c.Name, func() {
		var r messages.HostResult
		supervisor.Guarded(func() (err error) {
			r, err = serve(ctx, sink)
			return err
		}, func(err error) {
			if err != nil {
				d.log(c, err)
				r = messages.HostResult{Error: failure(c.Name, err)}
			}
			ended <- r
		})
	})
	select {
	case r := <-ended:
		return r
	case <-ctx.Done():
	}
	select {
	case r := <-ended: // both had happened
		return r
	default:
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return messages.HostResult{Error: &messages.HostError{Type: "TimeoutError", Message: fmt.Sprintf("the host function %s did not answer within %v", c.Name, within)}}
	}
	return messages.HostResult{Error: interrupted(c.Name)}
}

// log tells the host of a function that failed inside; errors are for the code.
func (d *Calls) log(c messages.HostCall, err error) {
	if exit, ok := errors.AsType[supervisor.Exit](err); ok {
		d.host.o.Logger.Error("a host function failed inside", "function", c.Name, "call", c.ID, "panic", fmt.Sprint(exit.Panic), "stack", string(exit.Stack))
	}
}

// spend takes one call from the budget of a cell.
func (d *Calls) spend(cell int) *messages.HostError {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.spent[cell]++
	if most := d.host.o.MaxCalls; most > 0 && d.spent[cell] > most {
		return &messages.HostError{Type: "HostCallError", Message: fmt.Sprintf("this cell has made its %d calls of the host; go on in another cell", most)}
	}
	return nil
}

// find returns what serves a call, and how long it may take; 0: as long as the
// cell.
func (d *Calls) find(ctx context.Context, c messages.HostCall) (func(context.Context, *eventSink) (messages.HostResult, error), time.Duration, *messages.HostError) {
	switch c.Kind {
	case messages.CallTool:
		f, ok := d.functions[c.Name]
		if !ok {
			tools := d.host.tools(ctx)
			if f, ok = tools[c.Name]; !ok {
				return nil, 0, d.unknown(ctx, c.Name, tools)
			}
		}
		return func(ctx context.Context, m *eventSink) (messages.HostResult, error) { return d.run(ctx, f, c, m) }, f.Timeout, nil
	case messages.CallPrimitive:
		return func(ctx context.Context, m *eventSink) (messages.HostResult, error) {
			return d.callPrimitive(ctx, c, m)
		}, 0, nil
	case messages.CallFunctions:
		return func(ctx context.Context, _ *eventSink) (messages.HostResult, error) {
			raw, err := encodeValue("the list of functions", d.list(ctx))
			return messages.HostResult{Value: raw}, err
		}, 0, nil
	default:
		return nil, 0, &messages.HostError{Type: "HostCallError", Message: fmt.Sprintf("the host knows no calls of kind %q", c.Kind)}
	}
}

// tools are those of the launcher, if there is one.
func (h *Host) tools(ctx context.Context) map[string]Function {
	if h.o.Tools == nil {
		return nil
	}
	return h.o.Tools(ctx)
}

// unknown says which functions there are, and which tools.
func (d *Calls) unknown(ctx context.Context, name string, tools map[string]Function) *messages.HostError {
	text := "there is no host function " + name
	if lacking := d.host.o.Lacking; lacking != nil {
		if why := lacking(ctx, name); why != "" {
			return &messages.HostError{Type: "UnknownFunction", Message: text + ": " + why}
		}
	}
	names := slices.AppendSeq(slices.Collect(maps.Keys(d.functions)), maps.Keys(tools))
	slices.Sort(names)
	if names = slices.Compact(names); len(names) > 0 {
		text += "; there are " + strings.Join(names, ", ")
	} else {
		text += ": the host offers none"
	}
	return &messages.HostError{Type: "UnknownFunction", Message: text}
}

// run calls one function.
func (d *Calls) run(ctx context.Context, f Function, c messages.HostCall, m *eventSink) (messages.HostResult, error) {
	ctx = context.WithValue(ctx, callerKey{}, Caller{Call: c.ID, Session: d.exec.Key, Exec: d.exec.ID, Owner: d.exec.Owner, Say: m.event})
	value, err := f.Call(ctx, c.Args)
	if err != nil {
		return messages.HostResult{}, err
	}
	raw, err := encodeValue(f.Name, value)
	return messages.HostResult{Value: raw}, err
}

// encodeValue is a function's value as JSON.
func encodeValue(name string, value any) (messages.RawJSON, error) {
	raw, err := json.Marshal(value)
	switch {
	case err != nil:
		return nil, &messages.HostError{Type: "TypeError", Message: fmt.Sprintf("%s returned a value that cannot be sent: %v", name, err)}
	case len(raw) > maxValue:
		return nil, &messages.HostError{Type: "ValueError", Message: fmt.Sprintf("%s returned %d bytes, and %d is the most", name, len(raw), maxValue)}
	}
	return raw, nil
}

// interrupted is the end of a call that its cell did not wait for.
func interrupted(name string) *messages.HostError {
	return &messages.HostError{Type: "CancelledError", Message: fmt.Sprintf("bridge call %q aborted: the cell was interrupted or has ended", name)}
}

// eventSink takes the events of one function until it is closed.
type eventSink struct {
	call string

	mu  sync.Mutex
	say func(messages.HostEvent) // nil when closed; guarded by mu
}

// event emits an event. What cannot be encoded is said without its data.
func (m *eventSink) event(name string, data any) {
	raw, err := json.Marshal(data)
	if err != nil {
		raw = nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.say != nil {
		m.say(messages.HostEvent{Call: m.call, Name: name, Data: raw})
	}
}

func (m *eventSink) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.say = nil
}

var _ messages.HostCalls = (*Calls)(nil)

// Ask registers a question of the call's code; see messages.HostCalls.
func (d *Calls) Ask(ctx context.Context, r messages.InputRequest) <-chan messages.InputAnswer {
	in, id := d.host.inputs, r.ID
	q := in.put(d.exec.Key, id)
	ctx, cancel := context.WithCancel(ctx)
	answered := make(chan messages.InputAnswer, 1)
	d.host.running.start("input", func() { // ends with the answer
		defer cancel()
		idle := time.NewTimer(d.exec.InputTimeout)
		defer idle.Stop()
		select {
		case a := <-q.answer:
			answered <- a
			return
		case <-idle.C:
			in.settle(id, messages.InputAnswer{Status: messages.InputExpired, Idle: d.exec.InputTimeout})
		case <-ctx.Done():
			in.settle(id, messages.InputAnswer{Status: messages.InputExpired})
		}
		answered <- <-q.answer
	})
	if d.offer.Input != nil {
		d.host.running.start("input handler", func() { // ends with the handler, whose ctx ends when the answer is not needed any more
			var value string
			supervisor.Guarded(func() (err error) {
				if value, err = d.offer.Input(ctx, r); err == nil {
					value, err = Line(value)
				}
				return err
			}, func(err error) {
				switch {
				case err == nil:
					in.settle(id, messages.InputAnswer{Value: value, Status: messages.InputAccepted})
				case ctx.Err() == nil:
					d.host.o.Logger.Debug("an input handler gave no answer", "err", err)
					in.settle(id, messages.InputAnswer{Status: messages.InputExpired, Reason: unanswered(err)})
				}
			})
		})
	}
	return answered
}

// unanswered is why there is no answer, for the code that asked: nothing where the
// input has come to its end.
func unanswered(err error) string {
	if errors.Is(err, io.EOF) {
		return ""
	}
	if exit, ok := errors.AsType[supervisor.Exit](err); ok {
		return fmt.Sprintf("the input handler failed inside (%s)", exit.Kind)
	}
	return err.Error()
}

// callPrimitive serves a call of a primitive.
func (d *Calls) callPrimitive(ctx context.Context, c messages.HostCall, m *eventSink) (messages.HostResult, error) {
	reply, err := d.offer.Primitives.Call(ctx, &primitive.Call{
		Name: c.Name, ID: c.ID, Session: d.exec.Key, Exec: d.exec.ID, Owner: d.exec.Owner, Memory: d.offer.Memory, Emit: m.event,
	}, json.RawMessage(c.Args))
	if err != nil {
		return messages.HostResult{}, err
	}
	if len(reply.Value) > maxValue {
		return messages.HostResult{}, &messages.HostError{Type: "ValueError", Message: fmt.Sprintf("%s returned %d bytes, and %d is the most", c.Name, len(reply.Value), maxValue)}
	}
	return messages.HostResult{Value: reply.Value, NextSteps: reply.NextSteps}, nil
}
