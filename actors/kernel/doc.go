// Package kernel is the actor that owns one live interpreter and serves one
// session key, and the interface ([Backend], [Interpreter]) through which it
// talks to that interpreter.
//
// # Guarantees
//
//   - One call at a time. Its cells run in order; the first one that does not
//     complete ends the call, and later cells stay pending.
//   - A call that reached the actor is answered exactly once, with the truth:
//     the outcome is what happened to the code, the state is what became of the
//     variables. Code is never run twice.
//   - After an interrupt the next call starts only when the interrupted cell
//     has ended. A cell that does not end within the grace period costs the
//     session its interpreter, and the result says so.
//   - An interrupted call does not wait for slow sinks: after an eighth of the
//     grace period they go without output ([messages.Hurrier]), and after a third
//     of it what still waits of a cell that has ended is left out, and the result
//     says so.
//   - An interpreter that was started is closed, even when the start was cancelled
//     half way: the goroutine that starts one is joined.
//   - One is left to the next host only when it ends because its host does. Whose session
//     is closed, reset or evicted ends for good, whatever it was doing then ([Leaver]).
//   - Handle never blocks: whatever may take time runs in a goroutine that the
//     actor owns and that answers by a message.
//
// # Life
//
// The states of the actor. The supervisor's states around it (waiting,
// restarting, stopping, gone) are drawn in package supervisor:
//
//	cold ──Init──▶ starting ──started──▶ idle ◀──────────── callEnded ───────────┐
//	                  │                   │                                       │
//	                  │ start failed      └──Work──▶ busy ──Interrupt──▶ interrupting
//	                  ▼                               │                       │
//	               (Fail: not_started)                │ died                  │ grace over: killed
//	                                                  ▼                       ▼
//	                                       (Fail: lost; the strategy decides: restarting, or failed)
//
// # Goroutines
//
// The actor owns, at any time, at most: one starter (until started), one
// watcher (from started to the end of the interpreter), one run (while a call
// is in hand), one interrupter and one pinger. Each ends when the incarnation's
// context ends, and Terminate joins all of them. The actor of a [Server] owns one, which
// ends and is joined in the same way.
package kernel
