// Package selfref is the pack with which code manages the conversation that it
// is part of, and starts agents that go on from it:
//
//	runtime.selfref.context.remember("the tests need Python 3.9")
//	handle = runtime.selfref.fork.spawn("look into the failing test")
//	runtime.selfref.fork.gather_all([handle])
//
// # Guarantees
//
//   - The conversation is the host's: the pack reads and writes it through a
//     [Store], one change at a time for each key.
//   - A compaction is queued, and committed at the end of the call that queued it,
//     also when its code failed. A second one replaces the first.
//   - A fork has a copy of the conversation without the call that started it. It
//     never raises out of gather_all: its result says how it ended, status first.
//   - The number of forks that run at once, their depth, and the results that are
//     kept are bounded. Results come in natural order: fork_2 before fork_10.
//   - Forks of a call that was interrupted, or whose kernel died, are cancelled;
//     others run on until they end, are cancelled, or the pack is closed.
//   - Close cancels what runs and returns when it has ended, or after a while with
//     the names of what did not.
//
// # The life of a fork
//
//	running ──▶ completed
//	   ├──────▶ error       the agent failed, panicked, or was cancelled
//	   └─ result kept until so many newer ones have ended
//
// A Pack may be used from any goroutine. Each fork has one goroutine, which the
// pack owns and Close joins.
package selfref
