package coppice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coppice-run/coppice/actors/primitive"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// maxValue is the longest value of a host function, in bytes of JSON.
const maxValue = 8 << 20

// desk serves the questions and host calls of one call. Its methods may be
// called from any goroutine; the fields are set before the call is made.
type desk struct {
	host      *Host
	exec      messages.Execute
	input     InputHandler
	functions map[string]HostFunction
	registry  *primitive.Registry
	memory    string
	// slots holds a token for every host call that runs.
	slots chan struct{}

	mu    sync.Mutex
	spent map[int]int // host calls by cell; guarded by mu
}

// newDesk makes the desk of a call.
func (h *Host) newDesk(exec messages.Execute, r Request) *desk {
	d := &desk{host: h, exec: exec, input: r.Input, functions: h.offered, registry: h.registryOf(exec.Key), memory: r.Memory, slots: make(chan struct{}, h.o.MaxHostCallsAtOnce), spent: map[int]int{}}
	if len(r.HostFunctions) > 0 {
		d.functions = maps.Clone(h.offered)
		for _, f := range r.HostFunctions {
			d.functions[f.Name] = f
		}
	}
	return d
}

// hostCalls says that code may call the host. Calls with functions of their own
// need at least one that every call has.
func (r resolved) hostCalls() bool {
	return len(r.HostFunctions) > 0 || len(r.Packs) > 0 || r.Selfref != nil || r.Launcher != nil
}

// offer is a table of functions by name.
func offer(list []HostFunction) map[string]HostFunction {
	table := make(map[string]HostFunction, len(list))
	for _, f := range list {
		table[f.Name] = f
	}
	return table
}

// Pauses says that the call's active time stands still while c runs.
func (d *desk) Pauses(c messages.HostCall) bool {
	if c.Kind == messages.CallPrimitive {
		return d.registry.Pauses(c.Name)
	}
	return d.functions[c.Name].Pause
}

// Call serves one host call; see messages.Desk.
func (d *desk) Call(ctx context.Context, c messages.HostCall, say func(messages.HostEvent)) messages.HostResult {
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
	mouth := &mouth{say: say, call: c.ID}
	defer mouth.close()
	ended := make(chan messages.HostResult, 1)
	d.host.functions.start(c.Name, func() {
		var r messages.HostResult
		supervisor.Guarded(func() (err error) {
			r, err = serve(ctx, mouth)
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
func (d *desk) log(c messages.HostCall, err error) {
	if exit, ok := errors.AsType[supervisor.Exit](err); ok {
		d.host.o.Logger.Error("a host function failed inside", "function", c.Name, "call", c.ID, "panic", fmt.Sprint(exit.Panic), "stack", string(exit.Stack))
	}
}

// spend takes one call from the budget of a cell.
func (d *desk) spend(cell int) *messages.HostError {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.spent[cell]++
	if most := d.host.o.MaxHostCalls; most > 0 && d.spent[cell] > most {
		return &messages.HostError{Type: "HostCallError", Message: fmt.Sprintf("this cell has made its %d calls of the host; go on in another cell", most)}
	}
	return nil
}

// find returns what serves a call, and how long it may take; 0: as long as the
// cell.
func (d *desk) find(ctx context.Context, c messages.HostCall) (func(context.Context, *mouth) (messages.HostResult, error), time.Duration, *messages.HostError) {
	switch c.Kind {
	case messages.CallTool:
		f, ok := d.functions[c.Name]
		if !ok {
			tools := d.host.launcher.offered(ctx)
			if f, ok = tools[c.Name]; !ok {
				return nil, 0, d.unknown(c.Name, tools)
			}
		}
		return func(ctx context.Context, m *mouth) (messages.HostResult, error) { return d.run(ctx, f, c, m) }, f.Timeout, nil
	case messages.CallPrimitive:
		return func(ctx context.Context, m *mouth) (messages.HostResult, error) { return d.callPrimitive(ctx, c, m) }, 0, nil
	default:
		return nil, 0, &messages.HostError{Type: "HostCallError", Message: fmt.Sprintf("the host knows no calls of kind %q", c.Kind)}
	}
}

// unknown says which functions there are, and which tools.
func (d *desk) unknown(name string, tools map[string]HostFunction) *messages.HostError {
	text := "there is no host function " + name
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
func (d *desk) run(ctx context.Context, f HostFunction, c messages.HostCall, m *mouth) (messages.HostResult, error) {
	ctx = context.WithValue(ctx, callerKey{}, HostCaller{Call: c.ID, Session: d.exec.Key, Exec: d.exec.ID, Owner: d.exec.Owner, Say: m.event})
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

// mouth is through which a function says something, until it is closed.
type mouth struct {
	call string

	mu  sync.Mutex
	say func(messages.HostEvent) // nil when closed; guarded by mu
}

// event emits an event. What cannot be encoded is said without its data.
func (m *mouth) event(name string, data any) {
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

func (m *mouth) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.say = nil
}

var _ messages.Desk = (*desk)(nil)
