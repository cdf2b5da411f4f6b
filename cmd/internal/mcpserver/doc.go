// Package mcpserver serves the tools of a [coppice.Host] over the Model Context
// Protocol: on standard input and output for a host that starts it as a child,
// and over streamable HTTP.
//
// # Guarantees
//
//   - Every tools/call is answered by one result. What a call did wrong is told
//     to the model (isError, with the problem and the next step), never as an
//     error of the protocol.
//   - Output streams as progress notifications to a client that asked for
//     progress; a call that shows nothing sends one every few seconds, so that no
//     client gives up on it. Output that the client does not take holds Python
//     back.
//   - A cancelled request interrupts its cell, and keeps the session.
//   - input() asks the user through elicitation when the client can, up to
//     version 2025-11-25 of the protocol; otherwise the code is told that there
//     is nobody to ask.
//   - Over HTTP nothing is served without the bearer token, to another Host than
//     the loopback, or across origins; the token is compared in constant time and
//     appears in no log.
//   - Sessions outlive connections: the session is an argument of each call. On a
//     connection that has an id, calls that name no session have one of their
//     own, so that two clients do not meet by accident.
//
// # A call
//
//	tools/call ──▶ arguments wrong ────────────────▶ result, isError
//	     │
//	     └▶ running ──output──▶ notifications/progress
//	          │  │ input() ───▶ elicitation/create ──▶ the answer, or none
//	          │  └ cancelled ─▶ interrupted
//	          └──▶ result: text, images, structured content
//
// The handlers may be called from any goroutine.
package mcpserver
