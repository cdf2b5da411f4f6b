// Package top is the screen of coppice top: the sessions of a running server with
// their state, queue, memory, processor, restarts and last exit, the supervision
// tree, what happens in it, and the output of the selected session while it comes.
//
// # Guarantees
//
//   - The screen shows what the server says and changes nothing but on a key; what
//     ends a session asks first.
//   - It follows the server's changes. When the connection is lost it says so and
//     tries again; what it shows is then old, and marked so.
//   - When Run returns, its goroutines have ended.
//
// # The screen
//
//	live ──space──▶ paused ──space──▶ live
//	  │ x                                ▲
//	  └──▶ asking ──y──▶ (stop) ─────────┤
//	          └──any other key───────────┘
//
// The model is changed by the goroutine of bubbletea alone; commands run in
// goroutines of Run, which joins them.
package top
