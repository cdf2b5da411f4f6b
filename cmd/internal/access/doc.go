// Package access lets other machines use a server: over TLS, with tokens that belong to
// tenants, each of which has a part of its own.
//
// # Guarantees
//
//   - Nothing is spoken but TLS 1.3, with the certificate that is on disk when the connection
//     begins. One that cannot be used (half of a renewal, a key that others can read) leaves
//     the one before in use, and the log says so.
//   - The file of tokens has the SHA-256 of each token and no token. It is written whole or not
//     at all, by one program at a time, and read again when it changes; one that cannot be read, or
//     that others can, opens nothing.
//   - Whether a text is a token takes the same time whatever it is, and whichever token.
//   - A token that was revoked or has expired opens nothing from the moment that the file says
//     so, or that its time is over, and what it had opened ends: streams, uploads, WebSockets,
//     and what was made for its holder (the access tokens of E2B's sandboxes, signed addresses).
//     Code that it has started goes on: it is the tenant's.
//   - A route is answered to a token whose scope holds the one that the route declares. One that
//     declares none is answered to no one.
//   - A tenant's request is served by its own part alone, which has its own host. There is no table
//     of all tenants' sessions, executions, workspaces, kernels or sandboxes in which something could
//     be looked up: what is another's is not there, and is answered as what never was.
//   - What a token let in is a line of the audit log: the ID of the token, its tenant, the route, and
//     how it ended. No token, no code and no path is in it.
//
// # Who is held off
//
// Whoever reaches the port and has no token: the guard of package httpserver and the bounds of
// package inbound are in front, with the names of the certificate in place of those of the loopback
// interface. A web page: its requests have another origin. A tenant that wants what another has: by
// names, by paths, by headers, by IDs, and by what errors say. A tenant with the scope read that wants to run
// code.
//
// Not held off here: code of a tenant that attacks the machine it runs on. That is what the
// isolation of its host is for; without one, code does what the user of the server may do.
//
// # A token
//
//	          expires, or is revoked
//	open ────────────────────────────▶ over ──90 days──▶ forgotten
//	  │ ▲
//	  ▼ │ the file cannot be read / can be read again
//	 shut
//
// # A part
//
//	        first request            the server ends
//	none ───────────────▶ starting ─▶ up ──────────────▶ ended
//	  ▲                      │ failed
//	  └──────────────────────┘
//
// # Who owns what
//
// [Tokens] own the goroutine that looks at the file, and Close joins it. [Server] owns its parts: Serve
// ends them before it returns. Locks guard tables; nothing waits under one but for a read of a
// small file.
package access
