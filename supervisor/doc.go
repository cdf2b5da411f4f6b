// Package supervisor is supervision trees on Hollywood actors. It knows nothing
// of what the actors do: it runs [Behaviour] values as children of [Supervisor]
// values, gives them [Work], and lets [strategy.Strategy] values decide what happens
// to a child that fails, hangs, is idle or is one too many.
//
// A [System] is a tree. Its inner nodes are supervisors, its leaves are
// behaviours of the application. Each incarnation of a child is one actor of
// Hollywood: it calls the behaviour, recovers what that panics with, and
// reports how it ended.
//
//	system ── root ─┬─ supervisor "gateway" ─┬─ "server"      static: listed in Options.Children
//	                │                        ├─ "session 1"   dynamic: made when work comes for the key
//	                │                        └─ "session 2"
//	                └─ "journal"
//
// # Guarantees
//
// Work:
//
//   - A child has at most one work in hand. What waits for it stays in its
//     supervisor, in the order of [Supervisor.Submit], and is begun in that order.
//   - Every work that was submitted is settled exactly once: by the child, by
//     the Handler's Unserved, or at the latest when the supervisor is over, however
//     it ends. A work that came from [Begin] or [Ask] is settled as well when the
//     actor that was asked is over.
//   - Work that an incarnation has begun is never begun by another one, unless
//     the Handler submits it again. Work that was not begun is not lost when an
//     incarnation ends: it goes to the next one, before everything else.
//
// Messages:
//
//   - [Ref.Tell] and [Ctx.Tell] never block. The messages of one sender arrive
//     in order. Mailboxes have no bound; bound what you send, with [Credit] or
//     with a work in hand.
//   - False means that the message was not taken. True means that it is
//     handled, or dropped when the incarnation ends before its turn; a message
//     that owns something hears of that ([Droppable]). A message never reaches
//     an incarnation later than the one that took it.
//   - A question to an actor that is over fails at once.
//
// Failure:
//
//   - Panics, errors and runtime.Goexit in any code of the application, the
//     Handler and the strategy included, become a typed [Exit]; none ends the
//     program or reaches Hollywood.
//   - An exit is reported once, by the incarnation itself, before the next one
//     starts. Terminate is called exactly once for each incarnation whose Init
//     was entered.
//   - A child that does not end in time is abandoned: its key is free, its
//     late messages and answers do not count, and its goroutine is accounted
//     for until it returns. Go has no means to end it. Until then it keeps its
//     place in the capacity, because what it owns may still be there.
//   - No child outlives its supervisor, and no goroutine of a system outlives its
//     [System.Shutdown], but those that the report names.
//
// # Who may call
//
// The methods of [System], [Ref], [Work], [Reply] and [Credit] may be called
// from any goroutine. Those of [Ctx] say it one by one. Those of [Supervisor]
// are for its [Handler], inside its calls. [Ask], [Reply.Wait],
// [System.Snapshot] and [System.Shutdown] block, and therefore do not belong in
// an actor.
//
// # The life of a child
//
// The states are those of messages.ChildState. Every arrow is one
// messages.ChildChanged event. "Live" states take a place in the capacity. An
// arrow names a directive of the strategy, a method of [Supervisor], or what
// the child or its work asked for.
//
//	          Submit                Spawning: no objection
//	(unknown) ──────▶ waiting ────────────────────────────────▶ starting
//	    │               │  Spawning: Stop, nothing waits           │ Up
//	    │ no objection  └───────────────▶ gone                     ▼
//	    └──────────────────▶ starting                             idle ◀──────────┐
//	                                                               │ dispatch      │ Finish,
//	                                                               ▼               │ nothing waits
//	                                                              busy ────────────┘
//
//	starting, idle, busy ── failure ─────────────▶ suspended
//	suspended ── Resume ─────────────────────────▶ starting, idle, busy: where it was
//	suspended ── Restart ────────────────────────▶ restarting
//	suspended ── Stop, Abandon ──────────────────▶ stopping
//	starting, idle, busy ── Restart, Fresh,
//	                        group restart ───────▶ restarting
//	starting, idle, busy ── ErrDone, Stop, Last,
//	                        End, Drain ──────────▶ stopping
//	restarting ── gone, and After has passed ────▶ starting (epoch + 1)
//	restarting ── abandoned ─────────────────────▶ waiting, or starting at once
//	stopping ── gone, work waits ────────────────▶ waiting, or starting at once
//	stopping ── gone, exit exhausted ────────────▶ failed
//	stopping ── gone ────────────────────────────▶ gone
//	failed ── Restart ───────────────────────────▶ waiting, or starting at once
//	failed ── End, IdleTTL ──────────────────────▶ gone
//
//	live: starting, idle, busy, suspended, restarting, stopping
//
// A dynamic key that is gone is forgotten. The entry of a static child stays,
// and Supervisor.Restart or a group restart brings it back.
//
// # Invariants
//
// What the tests check after every step, in the order of their importance:
//
//  1. Every work has one answer.
//  2. A work is begun at most once, and the works of a key in order.
//  3. A key never has two live incarnations (but for one that is abandoned).
//  4. A child that is busy, starting or suspended is never evicted.
//  5. The number of live dynamic children, with those that were abandoned and
//     have not come back, never exceeds what LRU allows.
//  6. A pinned child is never evicted by a strategy inside of Pin.
//  7. Keys that wait for capacity are served in order, and wait only while
//     there is a reason to.
//  8. No child is without a parent: the end of a supervisor ends what is below it.
//  9. Every Init that was entered has its Terminate.
//  10. Hollywood restarts no actor and finds no two with one name
//     ([System.Bugs] is empty).
//
// # Strategies
//
// A strategy is a pure value of package strategy, below this one; what a
// supervisor does can be read where its strategy is made:
//
//	strategy.Chain(
//		strategy.RestartOnce(),
//		strategy.Heartbeat(5*time.Second),
//		strategy.Pin(strategy.Chain(strategy.IdleTTL(5*time.Minute), strategy.LRU(4))),
//	)
package supervisor
