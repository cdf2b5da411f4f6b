// Package handover is how a running server of sessions is replaced by another program of the
// same user, without the loss of anything: the one that runs hands its listeners, and what it
// knows of executions, to the one that comes; sessions and the calls that run in them pass
// from one to the other by way of the process that keeps them (package custody).
//
// It knows the order in which things move, and nothing of what they are: that is the
// servers' ([Options].Leave, and what the successor does between [Succession.Take] and
// [Succession.Taken]).
//
// # Guarantees
//
//   - A server hands over to a process of its own user that knows its token, and is the
//     process that it says it is (its number as the system tells it, and its start time). A
//     successor asks only the process that is recorded, of its own user, by a socket in a
//     folder that is closed to others.
//   - Before anything moves, the successor has said which version of this protocol it
//     speaks and what it knows of what would be handed over, and has refused or was refused
//     by name ([*RefusedError]). The server that runs goes on then, as if nobody had asked.
//   - One successor at a time. While the successor gets ready, the server serves.
//   - Leave is all or nothing: when it says that something holds the server ([*BusyError]),
//     the server goes on, and the successor may ask again.
//   - When the successor ends, or is killed, before it has said that it serves, the server
//     learns it, once that process is gone ([Left.Wait]), and takes everything back: it has
//     kept its listeners, and what it has written down.
//   - When the server is killed, at whatever step, the successor learns it and goes on with
//     what there is: the listeners and the token, once it has been offered them, and what
//     is in custody, which its holder's death has set free. What it has not been handed
//     is what a killed server has always taken with it: of executions that ran, nothing.
//   - When both are killed, what is in custody waits for the next server, for as long as it
//     does after any kill.
//   - No step is given up because of the time that it takes, but for the first word of
//     one who connects.
//
// # The steps
//
//	the server that runs                        the successor
//	 serving  ◀───────────── hello ───────────  asking     version, what it knows, token
//	    │     ──────── refused: why ─────────▶  ended
//	    │     ──── offer, with listeners ────▶  offered    gets ready: its host stands
//	    │     ◀───────────── take ───────────  ready
//	    │     ────────── busy: with what ────▶  ready      asks again
//	    ▼
//	  left    ─── left, with what it knows ──▶  owner      takes the sessions, and serves
//	    │     ◀───────────── mine ───────────  serving
//	    ▼
//	  over
//
//	left ──the successor's process has ended before mine──▶ serving again
//
// Until "left" everything belongs to the server; from then on to the custodian, until the
// successor, or else the server again, has taken it out. There is no moment in which both
// hold a session: custody is locked.
//
// A hello is read by every version: version, and why one refuses, never change their names.
//
// # Who owns what
//
// An [Offer] has a goroutine that accepts and one for the successor that it hears; Close
// joins both. A [Succession] has none. Any goroutine may call the methods of an Offer; those
// of a Succession and a Left are called by one at a time. It works on Linux ([Supported]).
package handover
