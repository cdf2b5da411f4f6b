package coppice

import (
	"cmp"
	"context"

	"github.com/coppice-run/coppice/internal/hostcall"
)

type (
	// HostFunction is a function of the host that code in cells may call:
	//
	//	tool.search(query="coppice", limit=3)
	//
	// [Function] makes one of a typed Go function.
	HostFunction = hostcall.Function
	// HostCaller says who calls a host function; see [CallOf].
	HostCaller = hostcall.Caller
	// InputHandler answers a question of a call's code: a line, without its end.
	InputHandler = hostcall.InputHandler
)

// Function makes a HostFunction of f. The arguments are decoded into In, and one
// that In does not have is a TypeError in the code.
func Function[In, Out any](name, description string, f func(context.Context, In) (Out, error)) HostFunction {
	return hostcall.Of(name, description, f)
}

// CallOf returns who calls the host function that got ctx. False: ctx is of no such
// call.
func CallOf(ctx context.Context) (HostCaller, bool) { return hostcall.CallOf(ctx) }

// HostCallOptions say what code in cells may ask of its host. The zero value of each
// field is its default.
type HostCallOptions struct {
	// Functions are what code may call as tool.name(key=value). No other function of
	// the host can be reached.
	Functions []HostFunction
	// MaxCalls is how many calls of functions and primitives one cell may make; more
	// are refused. 0: 10,000; negative: no limit.
	MaxCalls int
	// MaxAtOnce is how many of one call may run at a time; more wait. 0: 64.
	MaxAtOnce int
	// Packs are the runtime primitives that code may call as
	// runtime.<pack>.<name>(...).
	Packs []Pack
	// Selfref adds the pack selfref: the agent's conversation, and forks of it.
	// nil: there is no such pack.
	Selfref *Selfref
}

func (o HostCallOptions) withDefaults() HostCallOptions {
	o.MaxCalls = cmp.Or(o.MaxCalls, 10_000)
	o.MaxAtOnce = cmp.Or(max(o.MaxAtOnce, 0), 64)
	return o
}

// hostCalls says that code may call the host. Calls with functions of their own
// need at least one that every call has.
func (r resolved) hostCalls() bool {
	return len(r.HostCalls.Functions) > 0 || len(r.HostCalls.Packs) > 0 || r.HostCalls.Selfref != nil || r.Launcher != nil
}
