// Package sinks consumes what calls emit: it keeps what a result shows, streams
// events to those who watch, and holds producers back while what they print is not
// taken.
//
// # Use
//
// A [Hub] is one supervisor in the tree. For each call it opens a [Call],
// which is the messages.Outlet that the kernel writes to:
//
//	hub, err := sinks.NewHub(sinks.HubOptions{Artifacts: dir})
//	system, err := supervisor.Start(ctx, supervisor.SystemOptions{Children: []supervisor.Spec{hub.Spec(), …}})
//	…
//	out, err := hub.Open(ctx, exec, sinks.NewEvents(os.Stdout))
//	defer out.Close()
//	exec.Out = out
//
// # Guarantees
//
//   - The events of a call are numbered from 1 without a gap, and reach every
//     lossless sink of the call in that order, each once.
//   - Emit blocks while a lossless sink has no credit left, and gives up with
//     the cause of its ctx; an event that it gave up on reached no sink and has
//     no number. So the memory that a call takes is bounded by the credit of
//     its subscriptions, whatever it prints.
//   - After [Call.Hurry], which follows an interrupt, no sink but that of the
//     result makes Emit wait: output that a sink has no credit for is left out for
//     it, and a notice with the code [NoticeSkipped] stands there.
//   - A lossy sink never makes Emit wait: what it has no credit for is dropped
//     and counted.
//   - A sink that fails is started again once, if it can be. When it fails
//     again, its subscription is dead: it takes nothing more and holds nothing back. If
//     that is the result sink, the Output says so.
//   - A sink never sees two calls of its methods at once.
//
// # The tree
//
// Sinks run in children of the hub's supervisor, each an actor with its own
// failures:
//
//	sinks
//	├─ result-0 … result-7   the result sinks of all calls, shared out by session
//	├─ journal               a sink of the host, for all calls
//	└─ sink#7                a sink of one call, for as long as the call is open
//
// What a sink has not handled yet does not live in its actor but in the subscription
// between it and the call, and so does the credit: it is still there when the
// actor was restarted. The static actors outlast a drain of the tree, so calls
// that are ended by a shutdown still get their output.
//
// # The life of a subscription
//
//	open ──the sink fails, and another can be made──▶ open
//	  │ ╲──the sink fails──────▶ dead ──Close──▶ closed
//	  └────────Close─────────────────────────────▶ closed
package sinks
