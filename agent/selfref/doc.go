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
//     [Store], one change at a time for each key. Its system message stays byte for
//     byte but for one section, which has a check, so that no text is taken for it.
//   - A compaction is queued, and committed at the end of the call that queued it,
//     also when its code failed. A second one of the call replaces the first. A call
//     of a tool that is not answered yet, and what came since, follow the summary.
//   - A compaction that cannot be saved is reported, in the result and to the host
//     ([Options].OnCommit). A store that hangs holds no result.
//   - A fork has a copy of the conversation without the call that started it, under a
//     key that was never used: it takes no other conversation's place. It never raises
//     out of gather_all: its result says how it ended, status first, and is cut, with
//     a note, where it is too long.
//   - The number of forks that run at once, their depth, and the results that are
//     kept are bounded. Results come in natural order: fork_2 before fork_10. No fork
//     waits for itself.
//   - Forks of a call that was interrupted, or whose kernel died, are cancelled;
//     others run on until they end, are cancelled, their session is closed, or the
//     pack is. A reset, a crash and an eviction of the session leave them alone.
//   - Close cancels what runs and returns when it has ended, or after a while with
//     the names of what did not.
//
// # The life of a fork
//
//	running ──▶ completed
//	   ├──────▶ error       the agent failed, panicked, or was cancelled
//	   └─ result kept until it is dropped, newer ones need its place, or its session
//	      is closed; then the conversation that was made for the fork is deleted
//
// A Pack may be used from any goroutine. Each fork has one goroutine, which the
// pack owns and Close joins.
package selfref
