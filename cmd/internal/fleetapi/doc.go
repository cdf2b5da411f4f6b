// Package fleetapi makes the servers of a fleet one service: a call for a session that
// arrives at any node runs at the one that owns the session's key, and nowhere else. Package
// fleet decides who owns it; this package asks it, and sends requests on.
//
// # Guarantees
//
//   - A request about a session is served by the owner of its key, in the epoch of the
//     claim, which the headers Coppice-Node and Coppice-Epoch of the answer say. A key that
//     nobody owns is claimed, for a request that begins something: by the node that was
//     asked or, with [Options].Spread, by the less loaded of the two that a rendezvous hash
//     puts first among those that are up. A node with [Options].Front claims none.
//   - A workspace is one key, with all that is in it: sessions, files and processes.
//   - The lease is looked at before code runs and before anything of what it comes to
//     leaves. What may not leave any longer is told as lost.
//   - Code begins once: a request with an epoch that is over is refused, and so is one
//     without an epoch when code may have run in an earlier one. It is refused before
//     anything runs, so that whoever went on with the session learns first that what it had
//     in memory is gone. Who names the last epoch of a session that has ended in order goes on,
//     once the node that had it says that the request is new; the result says why it begins
//     anew.
//   - So are requests in the words of other protocols ([Node.Speak]): package dialect says
//     what has to be known of one. Lists, the tree and the overview are those of all nodes.
//   - A checkpoint on disk is of all nodes that have [Options].Records, and of one name there is one:
//     who writes or drops it has its name for that time.
//   - A request is sent on once more only when it surely did not arrive, or when it changes
//     nothing.
//   - While the directory is away nothing is ended. What needs it is answered 503, with the
//     reason and Retry-After.
//   - A node that is drained begins nothing more and says which other one to ask. What runs
//     comes to its end, and its result can be asked for; sessions in which nothing runs are
//     ended and their claims released at once, so that their next calls need not wait for the
//     end of a lease.
//   - With [Options].Records, idle sessions of a node that is drained are kept on disk, where the
//     next owner restores them. The claim says which record counts, so that it is restored by
//     one owner, once, and neither an owner that is over nor one that is late has a part in it.
//     What is kept is no older than the last answer about the session.
//   - A claim is released when its session has no kernel any more and nothing runs for it.
//
// # A node
//
//	      Join               certificate
//	new ───────▶ a life ──────────────────▶ clearing: turns are lost, sessions end
//	               │  ▲                        │
//	               │  └────── joins again ─────┘
//	         Drain ▼
//	           draining ── certificate ──▶ clearing ──┐
//	               │ nothing runs, or its time is up  │
//	         Close ▼ ◀────────────────────────────────┘
//	             closed
//
// # Who owns what
//
// A [Node] has three goroutines: one for its lives, one that releases claims, and one that
// sees the other nodes come and go. [Node.Close] ends and joins them. Its lock guards the
// table of keys; each key has one goroutine at a time that claims or releases it. Requests
// run in the goroutines of the HTTP server.
//
// Tools, and files and artifacts outside of workspaces, stay with their node: a request with
// the header Coppice-Node goes to the node that it names. What is streamed to and from a workspace is
// not held back until its end: the lease is looked at before each part of it, and an answer that may
// not go on is cut off. A connection that was taken over, as by a WebSocket, is not looked at.
package fleetapi
