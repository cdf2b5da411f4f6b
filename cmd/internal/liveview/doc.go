// Package liveview is the page of coppice serve: the control room of a server. It shows
// what needs a person first, then how the server goes, all sessions as a table, the
// supervision tree, and of each session what it executed, what became of its state and
// why, and what can be done about it.
//
// # Guarantees
//
//   - The page and its files hold nothing of the server: they are served to anybody
//     on the loopback interface. What they show comes from the HTTP API
//     (cmd/internal/httpapi) and from the vitals, with the token that a person enters;
//     it is kept in the tab's memory and session storage, and never in an address.
//   - Nothing is loaded from elsewhere: it works offline. The content security
//     policy allows scripts, styles and connections of this server alone. HTML and
//     Markdown of a kernel are made again from a few harmless elements without
//     attributes; nothing that a cell writes becomes part of the page as it is.
//   - Ten thousand sessions stay usable: the table has in the page what is in sight.
//     A filter (state:busy rss:>100M owner:x), the order and the view are part of the
//     address, and so are a session and an execution.
//   - What ends a session says first what will be lost. What cannot be done now is not
//     offered, with the reason.
//   - Code is written in an editor that brings back what the session ran, and completes and
//     explains with what the kernel knows; a kernel that has something else to do is not
//     asked. The processes of a workspace have a terminal, which goes on where a connection
//     broke; its files are listed, taken and brought.
//   - Executions and events are searched by the server, so that they are found after a
//     reload, too, and also by code that no list shows.
//   - A server that was restarted is found again: the page says so and starts over,
//     or asks for the token when that is another. What happened before a reload is
//     shown as far as the server still has it.
//   - Everything can be reached with a keyboard, states are words besides colours,
//     and changes are announced to screen readers without reading out every line.
//
// # The page
//
//	signed out ──token──▶ loading ──sessions, overview, executions──▶ live
//	     ▲                   │ 401                                     │ the stream ends
//	     └───────────────────┴──────────── retrying ◀──────────────────┘
//	                                          │ after 0.5 s ... 15 s, from the last event it saw
//	                                          └──▶ live
//
// A paused page collects what happens and shows it when it goes on.
//
// # The files
//
// assets has plain ES modules, which the browser loads as they are: no step builds
// them. Their types stand in comments, and make test-browser has TypeScript check them.
// The editor and the terminal are made of packages of npm: bundle has their sources, make
// liveview-assets makes assets/vendor-* of them, which are checked in, and a test says when
// they are out of date. They keep to the policy: their styles are sheets that are adopted.
//
//	main ─┬─ overview ─ spark      state ── api        what the server says, and changes
//	      ├─ table ─ filter        words, filter, ansi  pure, with tests of their own
//	      ├─ tree                  actions ─ dialog     what can be done, and what it costs
//	      ├─ session ─ transcript ─ output ─ markup, ansi
//	      │       └─ run ─ source, vendor-editor
//	      ├─ workspaces ─ files, processes ─ vendor-terminal
//	      └─ executions, past      dom, route           elements and addresses
package liveview
