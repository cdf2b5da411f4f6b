// Package custody keeps descriptors for a host, so that what they hold open outlives
// it: a small process of Python, the custodian, has copies of them, and hands them to
// the next host of the same user that proves itself.
//
// It knows nothing of sessions. What ends with the last copy of a descriptor (a session
// that reads the other end of a socket, all that is below an owner of package process)
// lives on while the custodian has one, whatever becomes of the host.
//
// # Guarantees
//
//   - What was kept ([Custody.Put] has returned nil) is there for the next host, also
//     when this one is killed with SIGKILL at any instant. What was not is gone with it.
//   - The custodian reads and writes none of the descriptors: what comes to a socket or
//     a pipe stays there, up to its buffer, and then holds its writer back. So nothing
//     is lost or doubled on the way from one host to the next but what the earlier one
//     had read.
//   - A custody has one host at a time. It is the one that holds host.lock (flock(2)),
//     which the system frees with its holder, and which says who that is: a child that a
//     killed host was just starting has the lock for an instant longer, and is no host.
//     The custodian looks whether the open file that it is shown is the one that holds the
//     lock.
//   - A host is believed when it is of the same user and the process that it says it is
//     (its pid as the system tells it, and its start time), knows the token of
//     record.json, and holds the lock. Else it is refused, and told why.
//   - The token goes to the custodian alone. Before a host says it, the folder and the
//     files have to be this user's and closed to others, and the process at the other end of the
//     socket, as the system tells it, has to be the one that is recorded, with its start
//     time. Else they are refused: a [*RefusedError].
//   - When no host comes for [Options.KeepFor], the custodian removes its folder and ends,
//     and with it all copies. So it does when a host ends that has nothing in custody but
//     what is kept for the sake of the rest, and when its host says so ([Custody.End]).
//   - When the custodian is killed, its copies end with it. A host that is there learns
//     it at once ([Custody.Done]) and has what it had; when none is there, what was kept is
//     lost, and [Scan] says so, by name.
//   - What ends all processes of a host from outside (the end of its container, or of its
//     unit of systemd) ends the custodian, too. It heeds SIGTERM, and then ends in order.
//   - Files are 0600, folders 0700. The token is in record.json alone: not in arguments,
//     the environment, or errors.
//
// # Files, in the folder of all custodies, a folder for each
//
//	record.json   the custodian: its process and the token
//	host.lock     locked by the host, and says which process that is
//	names         what is kept, by name: for who finds it when the custodian is gone
//	s             the socket at which hosts ask
//
// A folder has a name that begins with a dot until its first host has locked it.
//
// # The states of a custodian
//
//	          the link to its host ends, in order ([Custody.Leave]) or not
//	attached ───────────────────────────────────────────────▶ waiting
//	 ▲  │ ▲                                                    │   │
//	 │  │ └─────────────── a host proves itself ───────────────┘   │ KeepFor has passed,
//	 │  │                                                          │ or nothing is kept
//	 │  └─── End ──────────────────────▶ ended ◀───────────────────┘
//	 │                                     all copies are closed
//	[Begin]
//
// A host that proves itself while the custodian has not noticed yet that the link to the
// last one has ended takes its place: the lock says that the last one is gone.
//
// All functions and methods may be called from any goroutine. Custody works on Linux
// ([Supported]); elsewhere everything says [ErrUnsupported].
package custody
