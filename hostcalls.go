package coppice

import (
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

// hostCalls says that code may call the host. Calls with functions of their own
// need at least one that every call has.
func (r resolved) hostCalls() bool {
	return len(r.HostFunctions) > 0 || len(r.Packs) > 0 || r.Selfref != nil || r.Launcher != nil
}
