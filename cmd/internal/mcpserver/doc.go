// Package mcpserver serves the tools of a [coppice.Host] over the Model Context
// Protocol: on standard input and output for a host that starts it as a child,
// and over streamable HTTP.
//
// # Guarantees
//
//   - Every tools/call is answered by one result. What a call did wrong is reported
//     to the model (isError, with the problem and the next step), never as an
//     error of the protocol.
//   - Output streams as progress notifications to a client that asked for
//     progress; a call that shows nothing sends one every few seconds, so that no
//     client gives up on it. At most ten are sent in a second, of at most 16 KiB:
//     of more than that a client gets the ends, and all of it in the result. A
//     client that does not take them holds Python back.
//   - What runs for a client that has died, or that the server is stopped under, is
//     ended, and no process is left.
//   - A cancelled request interrupts its cell, and keeps the session.
//   - input() asks the user through elicitation when the client can; otherwise
//     the code learns that there is no one to ask. A secret (getpass) is never
//     asked for: a client shows and records what is typed into its form.
//   - A question waits for as long as the host's InputTimeout says. Until version
//     2025-11-25 of the protocol the server asks while it serves the call. From
//     2026-07-28 on a question ends the request, and the client makes it again
//     with the answer; the call runs on meanwhile, and its result waits for 5
//     minutes. What brings it back cannot be guessed and counts once.
//   - Artifacts are resources, and so are the notebooks in the working directory of
//     the server; no path of a resource leads out of it.
//   - Over HTTP nothing is served without the bearer token, to another Host than
//     the loopback, or across origins, and who has no token cannot keep out who has:
//     the server is that of package httpserver.
//     Clients with sessions of the protocol, and those of its stateless version,
//     are served side by side.
//   - Over HTTP no client reaches the session of another, by accident or on purpose;
//     see below. Artifacts and notebooks are files of the server, for all who have the
//     token.
//
// # Whose session a call uses
//
//	on standard input             what the argument session says, or "default": there is one client
//	over HTTP, with a session     the same, within the session of the protocol: a name is
//	of the protocol               the client's own, and ends with it
//	over HTTP, stateless          the handle that the argument session has; without one a
//	(2026-07-28 and later)        new session, whose handle the result names
//
// A handle is made by the server, from 96 random bits and a proof that it was made
// here: it needs no table, and another name is refused. The names that sessions have
// in the host are digests, so that who reads a log can use none. With
// Options.SharedSessions any name that is neither a handle nor "default" means one
// session for all clients.
//
// A session that a stateless call has begun may be gone on with, so that it is not
// ended with its call; but most such calls are the only ones. So it is a leftover
// until it is called again: beyond Options.MaxLeftover the oldest leftover ends, not
// the session of someone who works, and a call that comes late learns so. All others
// end as the host says, when they are idle or least recently used. Sessions of a
// connection that is gone end when the next call comes.
//
// Checkpoints on disk (sessions_save, sessions_restore) are those of whoever may name the session
// that they were saved of: of a connection, or of who has the session's handle, which is passed
// as the argument from to restore one into another session. They end as those sessions do, and
// with the server at the latest: nobody could name them afterwards. On standard input they are
// the user's, and stay; so do, with Options.SharedSessions, those of sessions that are shared.
// One that has an owner in the host is none of any client.
//
// # A call
//
//	tools/call ──▶ arguments wrong ────────────────▶ result, isError
//	     │
//	     └▶ running ──output──▶ notifications/progress
//	          │  │ input() ─┬─▶ elicitation/create ──▶ the answer, or none
//	          │  │          └─▶ result, with the question; the call is parked
//	          │  │              until tools/call with the answer (see dialogs)
//	          │  └ cancelled ─▶ interrupted
//	          └──▶ result: text, images, structured content
//
// The handlers may be called from any goroutine.
package mcpserver
