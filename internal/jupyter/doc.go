// Package jupyter is the client side of Jupyter kernels behind a server: REST
// to make and end them, one WebSocket for each to talk to it. It serves Kernel
// Gateway, Enterprise Gateway and Jupyter Server. It contains no actors.
//
// The protocol is "Messaging in Jupyter" (jupyter-client.readthedocs.io, version
// 5.3), carried in either framing of jupyter_server: one JSON text per message,
// or v1.kernel.websocket.jupyter.org.
//
// # Guarantees
//
//   - A connection is always read. What belongs to the running execution waits
//     in memory up to a bound and beyond it on disk; whoever takes the output
//     may be as slow as it likes. Nothing else is kept.
//   - [Kernel.Execute] returns when the reply and the idle of its request have
//     come, in whichever order, and all output was handed over. When one of the
//     two is lost the kernel is probed, and the reply says what may be missing.
//   - A connection that breaks is dialled again, for a minute, with the session id
//     of the one before: the server hands over what it has buffered. A request
//     that the kernel certainly never got is sent again; one of which that is not
//     certain is not.
//   - A kernel that numbers what it sends ([Kernel.EnableReplay]) repeats what did
//     not come, whoever swallowed it: a connection, a rate limit, a full queue.
//     Each output is handed over once and in the order of its number. What the
//     kernel has forgotten is counted in a [messages.Notice] at its place. The
//     client reports what has arrived, and the kernel does not run ahead of that by
//     more than a few MiB, which bounds its memory and that of the server.
//   - Such a kernel holds, within bounds, what was not taken ([ExecuteRequest.Keep]), also when it has
//     arrived: another client goes on with the execution from there ([Client.Attach]), whether it
//     runs, has ended, or never came to the kernel.
//   - With other kernels, a [messages.Notice] stands where a connection that broke
//     may have swallowed something. ipykernel and its relatives number their
//     messages in the ids, so the notice says how many at most, and is left out
//     when nothing can be missing. With ids that have no numbers, every break has
//     a notice.
//   - Output that is known to be missing is never passed over: the reply's
//     Incomplete and a [messages.Notice] say so. Known causes are a server's rate
//     limit, a full ZeroMQ queue behind an ipykernel (its messages are numbered), a
//     lost end mark, a failing disk and unreadable messages.
//   - A kernel whose process was replaced is lost, however the server words it:
//     the session in the header of every message names the process. Code is
//     never sent twice.
//   - An interrupt reaches the execution that ran when it was asked for, or none:
//     the next one begins when the server has answered the request, also when its
//     caller has left, and the kernel has dealt with what came of it. A server can
//     break that, by an answer that comes too early or never. An execution that is
//     hit then says so, and is sent again when its code has certainly not begun.
//   - No two sessions share a kernel, whatever the server says: [ErrShared].
//   - [Client.Start] leaves no kernel behind when it fails, or says which.
//   - No error and no trace holds the token or a text of the server, which may
//     be a traceback with its paths. The token is sent in a header only.
//   - No lock is held while something waits. No goroutine outlives its kernel:
//     two of them run while it lives (a reader, and a writer for each connection),
//     and end when it is lost or deleted.
//
// # Who may call
//
// [Kernel.Execute] is called from one goroutine at a time. Everything else may
// be called from any, also while Execute runs.
//
// # States of a kernel
//
//	Start: create ──▶ connect ──▶ verify ──▶ live ──┬─ dead, restarting, new session, 404,
//	          └───────────┴──────────┴─▶ deleted    │  server gone, exit() ─────▶ lost ──Delete──▶ gone
//	                  (on failure)       ▲    │     └──Delete──▶ lost ──────────────────────────▶ gone
//	                                     │    └─ connection breaks ─▶ away ─┬─ a minute, 404, 401 ─▶ lost
//	                                     └── ask ◀────── dialled again ─────┘
//
// Lost is final: [Kernel.Done] is closed, and the connection with it. Lost does
// not mean gone: the process may live until Delete.
//
// # States of an execution
//
//	sent ──▶ running ──┬─ reply ──▶ settling ── idle, or probed ──┬──▶ over
//	                   └─ idle ───▶ settling ── reply, or probed ─┘
//
// It is running from execute_input or its first output on: only then does the
// kernel heed an interrupt, so [Kernel.Interrupt] waits for it. An execution
// that Execute gave up on goes through the same states without an audience.
//
// # States of the messages of an execution with numbers
//
//	in order ──┬─ a larger number came ─▶ behind ── 50 ms ──┬─▶ asking ── answer, and its idle ─▶ in order
//	    ▲      ├─ a connection broke, a rate limit ─────────┤      │ ▲
//	    │      └─ silence, ever longer ─────────────────────┘      │ └── no answer, the connection broke
//	    └──────────── it has no answer: what is missing is told ◀──┘
package jupyter
