// Package forkserver makes the processes of Python sessions: from a fork server,
// which has imported everything and forks one in about a millisecond, or, where fork
// servers do not work, by starting an interpreter for each.
//
// # Guarantees
//
//   - A session has a process group of its own and holds no descriptor of
//     another session or of the fork server.
//   - The end of every session is reported with its exit status, and with what it
//     printed that had not been read.
//   - A session dies with the host: when the host is killed, the kernel closes
//     the one descriptor that only the host holds, and on Linux kills every
//     session at that instant, also one that is stuck in native code; elsewhere
//     its side thread ends it.
//   - With an owner ([Options.Owner], on Linux) whatever a session has started ends at
//     the latest with the host, in whatever process group and session it is; package
//     process says what an owner does not reach.
//   - Sessions survive the death of their fork server. Their end is then noticed
//     by looking, and has no exit status.
//   - A copy that a session makes of itself is a child like others, but has no exit
//     status: it has no parent that would report it.
//   - With a lifeline of its own ([Options.Lifeline]) of which somebody else has a copy, a
//     session outlives its host, and its fork server; the next host goes on with it where
//     the last one has stopped reading ([Adopt]). While no host reads, the session is held
//     back in its write. What it has read by [Child.HeldReader] is in the socket until it
//     reads again.
//   - On the rung gvisor of package sandbox the fork server and its sessions run in one
//     sandbox, in which it is the first process: they end together, have no numbers here
//     ([Child.Inside]), and are signalled by asking the server. Their descriptors go over
//     its socket as everywhere.
//   - No signal is sent to a pid that might belong to a stranger: the fork
//     server signals only children that it has not reaped, and without it the
//     start time of a process is compared first.
//
// All functions and methods may be called from any goroutine. This package knows
// how processes are made and ended; what is said on their descriptors is up to its
// caller.
//
// # The life of a session's process
//
//	Fork ──▶ asked ──forked──▶ running ──exit frame──▶ gone (Done, Err)
//	           │                  │                      ▲
//	           │    Adopt ──▶ running                    │
//	           └──failed──────────┼──────────────────────┤
//	                              └─server died─▶ orphan ┘ its pid is looked for
package forkserver
