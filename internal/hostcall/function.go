package hostcall

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"strings"
	"time"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// Function is a function of the host that code in cells may call:
//
//	tool.search(query="coppice", limit=3)
//
// [Of] makes one of a typed Go function.
type Function struct {
	// Name is what code calls it by. It must not begin with an underscore.
	Name string
	// Description is for whoever writes the code: models read it in the descriptions
	// of the tools that run code, and code has it in help(tool.search).
	Description string
	// Signature is what the function takes, as Python writes it, with the brackets:
	// "(query: str, limit: int = ...)". "": it is not known. [Of] derives it.
	Signature string
	// Help is what help(tool.search) says below that: lines about the arguments, say. "":
	// nothing.
	Help string
	// Call serves one call. args is a JSON object with the arguments. The value
	// is sent as JSON. ctx ends when the cell does, when the code gives the call
	// up, and after Timeout; a function that goes on regardless holds nothing up,
	// and its value is dropped. [CallOf] says who calls. It runs in a goroutine
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

// Of makes a Function of f. The arguments are decoded into In. One that In does not have, or that
// does not fit, is a TypeError in the code, and so is one that is missing: a field of In may be
// left out if it is a pointer or its tag has omitempty or omitzero.
func Of[In, Out any](name, description string, f func(context.Context, In) (Out, error)) Function {
	needs := required(reflect.TypeFor[In]())
	return Function{Name: name, Description: description, Signature: signature(reflect.TypeFor[In]()), Call: func(ctx context.Context, args json.RawMessage) (any, error) {
		var in In
		dec := json.NewDecoder(bytes.NewReader(args))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&in); err != nil {
			problem := strings.TrimPrefix(err.Error(), "json: ")
			if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
				problem = fmt.Sprintf("%s must be %s, not a JSON %s", PathAt(args, wrong.Offset), JSONName(wrong.Type.Kind().String()), wrong.Value)
			}
			return nil, &messages.HostError{Type: "TypeError", Message: name + "(): " + problem}
		}
		if problem := missing(args, needs); problem != "" {
			return nil, &messages.HostError{Type: "TypeError", Message: name + "(): " + problem}
		}
		return f(ctx, in)
	}}
}

// Caller says who calls a host function.
type Caller struct {
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
func CallOf(ctx context.Context) (Caller, bool) {
	c, ok := ctx.Value(callerKey{}).(Caller)
	return c, ok
}

// Check refuses functions that cannot be called.
func Check(list []Function) error {
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

// failure is what a host function's end means for the code that called it. The
// text of a panic stays with the host: it is no answer.
func failure(name string, err error) *messages.HostError {
	if exit, ok := errors.AsType[supervisor.Exit](err); ok {
		return &messages.HostError{Type: "HostCallError", Message: fmt.Sprintf("the host function %s failed inside (%s)", name, exit.Kind)}
	}
	return hostError(err)
}

// JSONName is the name that JSON has for a kind of Go, with its article.
func JSONName(kind string) string {
	switch kind {
	case "slice", "array":
		return "a list"
	case "struct", "map":
		return "an object"
	case "bool":
		return "true or false"
	case "string":
		return "a string"
	case "int", "int64":
		return "an integer"
	case "int8", "int16", "int32":
		return "an integer of " + strings.TrimPrefix(kind, "int") + " bits"
	case "uint", "uint8", "uint16", "uint32", "uint64":
		return "an integer, 0 or more"
	default:
		return "a number"
	}
}
