package coppice

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// HostFunction is a function of the host that code in cells may call:
//
//	tool.search(query="coppice", limit=3)
//
// [Function] makes one of a typed Go function.
type HostFunction struct {
	// Name is what code calls it by. It must not begin with an underscore.
	Name string
	// Description is for whoever writes the code.
	Description string
	// Call serves one call. args is a JSON object with the arguments. The value
	// is sent as JSON. ctx ends when the cell does, when the code gives the call
	// up, and after Timeout; a function that goes on regardless holds up nobody,
	// and its value is dropped. [CallOf] tells who calls. It runs in a goroutine
	// of its own, at the same time as others.
	//
	// An error is raised in the code: a *messages.HostError as what its Type says,
	// fs.ErrNotExist as FileNotFoundError, fs.ErrPermission as PermissionError, a
	// deadline as TimeoutError, and all others as HostCallError.
	Call func(ctx context.Context, args json.RawMessage) (any, error)
	// Timeout bounds one call. 0: none but the cell's.
	Timeout time.Duration
	// Pause lets the call's active time stand still while the function runs, for
	// one that asks a person, say.
	Pause bool
}

// Function makes a HostFunction of f. The arguments are decoded into In, and
// one that In does not have is a TypeError in the code.
func Function[In, Out any](name, description string, f func(context.Context, In) (Out, error)) HostFunction {
	return HostFunction{Name: name, Description: description, Call: func(ctx context.Context, args json.RawMessage) (any, error) {
		var in In
		dec := json.NewDecoder(bytes.NewReader(args))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&in); err != nil {
			problem := strings.TrimPrefix(err.Error(), "json: ")
			if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
				problem = fmt.Sprintf("%s must be %s, not %s", wrong.Field, "a JSON "+jsonName(wrong.Type.Kind().String()), "a "+wrong.Value)
			}
			return nil, &messages.HostError{Type: "TypeError", Message: name + "(): " + problem}
		}
		return f(ctx, in)
	}}
}

// HostCaller says who calls a host function.
type HostCaller struct {
	// Call is the id of the call, which its events carry.
	Call string
	// Session is whose code calls.
	Session messages.SessionKey
	// Exec and Owner are those of the Execute whose cell calls.
	Exec, Owner string
	// Say emits an event into the stream of the call. It does nothing once the
	// function has returned or was given up.
	Say func(name string, data any) `json:"-"`
}

type callerKey struct{}

// CallOf returns who calls the host function that got ctx. False: ctx is of no
// such call.
func CallOf(ctx context.Context) (HostCaller, bool) {
	c, ok := ctx.Value(callerKey{}).(HostCaller)
	return c, ok
}

// checkFunctions refuses functions that cannot be called.
func checkFunctions(list []HostFunction) error {
	seen := map[string]bool{}
	for _, f := range list {
		switch {
		case f.Name == "" || strings.HasPrefix(f.Name, "_") || len(f.Name) > 128 || strings.ContainsAny(f.Name, " \t\n\"'"):
			return fmt.Errorf("the host function %q needs a name without blanks, quotes and a leading underscore", f.Name)
		case f.Call == nil:
			return fmt.Errorf("the host function %q has no Call", f.Name)
		case f.Timeout < 0:
			return fmt.Errorf("the host function %q has a negative timeout; use 0 for none", f.Name)
		case seen[f.Name]:
			return fmt.Errorf("there are two host functions %q", f.Name)
		}
		seen[f.Name] = true
	}
	return nil
}

// hostError is err as Python raises it.
func hostError(err error) *messages.HostError {
	if he, ok := errors.AsType[*messages.HostError](err); ok {
		return he
	}
	kind := "HostCallError"
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		kind = "TimeoutError"
	case errors.Is(err, context.Canceled):
		kind = "CancelledError"
	case errors.Is(err, fs.ErrNotExist):
		kind = "FileNotFoundError"
	case errors.Is(err, fs.ErrPermission):
		kind = "PermissionError"
	}
	return &messages.HostError{Type: kind, Message: err.Error()}
}

// running are the goroutines that run code of the host: functions, primitives,
// input handlers. The host owns them; each ends when that code does, and
// Shutdown joins them as far as they end.
type running struct {
	mu    sync.Mutex
	names map[string]int // what runs; guarded by mu
	none  chan struct{}  // closed when nothing runs; nil while nobody waits; guarded by mu
}

func (r *running) start(name string, f func()) {
	r.mu.Lock()
	if r.names == nil {
		r.names = map[string]int{}
	}
	r.names[name]++
	r.mu.Unlock()
	go func() {
		defer r.done(name)
		f()
	}()
}

func (r *running) done(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.names[name]--; r.names[name] == 0 {
		delete(r.names, name)
	}
	if len(r.names) == 0 && r.none != nil {
		close(r.none)
		r.none = nil
	}
}

// wait returns when nothing runs any more, or with the names of what still does
// when ctx ends.
func (r *running) wait(ctx context.Context) []messages.Leftover {
	r.mu.Lock()
	if len(r.names) == 0 {
		r.mu.Unlock()
		return nil
	}
	if r.none == nil {
		r.none = make(chan struct{})
	}
	none := r.none
	r.mu.Unlock()
	select {
	case <-none:
		return nil
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var left []messages.Leftover
	for name, n := range r.names {
		left = append(left, messages.Leftover{
			Path: "host-function/" + name,
			Exit: messages.Exit{Kind: messages.ExitHung, Reason: fmt.Sprintf("%d calls have not returned", n)},
		})
	}
	return left
}

// failure is what a host function's end means for the code that called it. The
// text of a panic stays with the host: it is no answer.
func failure(name string, err error) *messages.HostError {
	if exit, ok := errors.AsType[supervisor.Exit](err); ok {
		return &messages.HostError{Type: "HostCallError", Message: fmt.Sprintf("the host function %s failed inside (%s)", name, exit.Kind)}
	}
	return hostError(err)
}
