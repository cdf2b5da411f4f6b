// Package liveview is the page of coppice serve that shows the supervision tree
// as it lives: every session with its state, queue, memory, processor, restarts
// and last exit, the output of executions while it comes, a timeline of events,
// and what can be done about a session.
//
// # Guarantees
//
//   - The page and its files hold nothing of the server: they are served to anybody
//     on the loopback interface. What they show comes from the HTTP API
//     (cmd/internal/httpapi) with the token that a person enters; it is kept in the
//     tab's memory and session storage, and never in an address.
//   - Nothing is loaded from elsewhere: it works offline. The content security
//     policy allows scripts, styles and connections of this server alone. Output is
//     shown as text and pictures; HTML of a kernel is never made part of the page.
//   - Five hundred sessions stay usable: fifty are shown at once, more on demand, and
//     a search finds one by its name, directory, state, owner or marks. What is on
//     the page stays where it is when something changes.
//   - A server that was restarted is found again: the page says so and starts over,
//     or asks for the token when that is another.
//   - Everything can be reached with a keyboard, states are words besides colours,
//     and changes are announced to screen readers without reading out every line.
//
// # The page
//
//	signed out ──token──▶ loading ──tree, sessions, executions──▶ live
//	     ▲                   │ 401                                 │ the stream ends
//	     └───────────────────┴──────────── retrying ◀──────────────┘
//	                                          │ after 0.5 s ... 5 s, from the last event it saw
//	                                          └──▶ live
//
// A paused page collects what happens and shows it when it goes on.
package liveview
