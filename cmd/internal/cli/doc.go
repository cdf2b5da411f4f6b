// Package cli is the command coppice: one file for each subcommand. Those of coppice
// notebook and coppice tool are in packages notebook and tool below this one, and what
// all of them share is in package console.
//
// # Guarantees
//
//   - [Main] returns; it never exits the process. When it returns, every
//     process and goroutine that it started has ended, or standard error names
//     what has not.
//   - What scripts read goes to standard output; progress and problems go to
//     standard error.
//   - The exit code of run tells how the call ended: 0 ok, 1 the cell raised,
//     2 the command line is wrong, 124 timeout, 130 cancelled, 70 the kernel
//     was lost or never reached. That of workspace exec is the program's. Other commands
//     use 0, 1 and 2.
//   - Colours and repainted lines are for terminals; NO_COLOR and TERM=dumb
//     take the colours away.
//
// # Signals
//
// The first interrupt (Ctrl-C) cancels the call and waits for its result: the
// session would be kept. A second one, or SIGTERM or SIGHUP at any time, ends
// everything at once. A node of a fleet takes the first SIGTERM or SIGHUP like an interrupt,
// and drains. A reader that goes away (coppice run … | head -1)
// cancels the call too, without a word.
//
//	running ──interrupt──▶ cancelling ──interrupt, SIGTERM, SIGHUP──▶ shutting down ──▶ exit
//	   └────────────────── SIGTERM, SIGHUP ─────────────────────────────▲
package cli
