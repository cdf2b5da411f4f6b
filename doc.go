// Package coppice gives a program Python sessions that stay alive: real Jupyter
// kernels, or interpreters forked in milliseconds, under a supervision tree,
// driven by calls that always end with a truthful result.
//
// # Start
//
// A [Host] owns one supervision tree. A [Session] is a name for one interpreter
// state; it costs nothing until it executes:
//
//	host, err := coppice.Start(ctx, coppice.Options{})
//	if err != nil { … }
//	defer host.Shutdown(context.Background())
//
//	s := host.Session("analysis")
//	result, err := s.Execute(ctx, coppice.Request{Cells: []messages.Cell{{Code: "x = 40"}, {Code: "x + 2"}}})
//	fmt.Println(result.Outcome, result.Text)
//
// # Guarantees
//
//   - Every Execute returns exactly one messages.Result, also when its kernel
//     dies, its context ends, or the host shuts down. The error beside it is
//     only for requests that could not be made (a [*RequestError]).
//   - Calls of one session run in the order in which they were made, one at a
//     time; calls of different sessions run at the same time.
//   - Code is never run twice.
//   - When ctx ends, the running cell is interrupted and the session is kept. A
//     cell that does not stop costs the session its kernel, and the result says
//     so.
//   - [Host.Shutdown] ends every process that the host started, and reports
//     what did not end. A host that is killed leaves nothing behind for long:
//     its gateway dies with it, and kernels end when their gateway is gone.
//
// All methods may be called from any goroutine.
//
// # Tools
//
// Package agent makes of a host what an agent puts before its model: tools with a
// name, a description, a JSON schema and a Call. They are thin: everything that
// they do goes through [Session] and [Host.Command].
//
// # The tree
//
//	supervisor
//	├─ sinks            what consumes output; the result sinks share the sessions
//	└─ gateway          routes by session key; owns the queue of each session
//	    ├─ kernel-gateway   the Jupyter Kernel Gateway process
//	    └─ session@cwd      one kernel actor for each session key
//
// With the runner backend the second is called runner, and its shared process
// fork-server: it forks sessions from a warm interpreter and needs no package.
//
// [Host.Snapshot] returns it as it is now, [Host.Watch] tells what changes.
package coppice
