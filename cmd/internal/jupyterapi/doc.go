// Package jupyterapi serves sessions of a host as kernels of a Jupyter Server: to its
// clients, unchanged.
//
//	/api, /api/status, /api/me, /api/kernelspecs   what the server is
//	/api/kernels/...                               start, list, interrupt, restart, end kernels
//	/api/sessions/...                              names of documents, and the kernel of each
//	/api/kernels/{id}/channels                     the messages of a kernel, over a WebSocket
//	/api/contents/..., /files/...                  the files of a folder, see package contents
//
// All of them stand below [Base]. A kernel is a session whose name is the kernel's id, so
// that "coppice top", the live view and the HTTP API show it, too. Kernels that were not
// started here are not listed.
//
// # Guarantees
//
//   - Nothing is answered without the server's token: as Authorization: token, as
//     Authorization: Bearer, or in the query, as token. The WebSocket is no exception.
//   - Requests on the shell channel of one kernel are served one at a time, in the order in
//     which they came. Those on the control channel do not wait for them.
//   - Between busy and idle of a request stands all that it has shown, and every client of
//     the kernel gets it. The reply goes to the client that asked, before the idle.
//   - Every execute_request gets one execute_reply, also when its kernel died under it, was
//     restarted, or could not be started; when the kernel is deleted, the connection ends
//     instead. Code whose reply says aborted was not run.
//   - A kernel whose process was replaced says so: with another session in the headers of
//     its messages, with the status starting, and before that, if no one has asked for it,
//     with restarting. Its count begins from 1 again. One whose process was kept on disk is
//     the same as before: what is not as it was is said on stderr by the next code.
//   - What an object of the kernel says over a comm stands in its place among what its request
//     shows, and every client gets it. A comm whose object is gone with its process is closed.
//   - A client that leaves ends nothing. One that is slow holds the output back; one that
//     takes nothing for a minute is let go.
//   - A client that connects again under its session_id takes the place of its earlier
//     connection, which ends. It gets what that was asked and waits for; and what came while
//     no one was connected, if it was the last that went: the latest 4 MiB, and whether there
//     was more.
//   - A kernel that was asked for as leased ends with the last connection to it.
//   - What is not served is refused in Jupyter's form of an error, and not left out.
//   - After [API.Close] nothing of this package runs.
//
// # States of a kernel
//
//	POST ──▶ starting ──▶ idle ◀──▶ busy ──▶ restarting ──▶ idle      it died, or was restarted
//	                       │                     └────────▶ dead      it could not be started again
//	                       ├── DELETE, shutdown_request ──▶ not found
//	                       └── idle for too long ─────────▶ dead ── the next request ──▶ restarting
//	                           unless it is kept on disk: it stays idle
//
// The methods may be called from any goroutine.
package jupyterapi
