// Package repl is the screen of `coppice repl`: cells are typed, run in a session
// and shown, one below the other.
//
// # Use
//
// [Run] takes over the terminal until the user leaves. It does not own the host:
// who calls it starts the host before and ends it afterwards.
//
// # States
//
//	         Enter, and the text is complete
//	typing ──────────────────────────────────▶ running
//	  ▲                                          │ Ctrl-C interrupts the cell; the
//	  └──────────────the result comes ───────────┘ session is kept
//
// A cell that asks for input is answered in the place of the next cell's text.
//
//	typing ──Ctrl-C twice on empty text, Ctrl-D, or exit──▶ left
//
// # Goroutines
//
// All fields of the model belong to the goroutine of Bubble Tea's loop. Two kinds
// of others send it messages: one for each call, which ends with the call's last
// event, and one for each question about the tree or the session. Run waits for all
// of them.
package repl
