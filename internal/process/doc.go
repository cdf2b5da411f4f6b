// Package process starts child processes and ends them, so that none is left
// behind, none blocks on its own output, and no signal ever reaches a stranger.
//
// # Guarantees
//
//   - A child leads its own process group, so that a Ctrl-C at the terminal of
//     the host does not reach it and [Process.Stop] reaches what it started.
//   - A child ends with the host, also when the host is killed with SIGKILL
//     (Linux; see [DiesWithHost] for the other systems).
//   - Output is drained into a bounded [Ring] for as long as the child lives.
//   - A child is always reaped, by the one goroutine that [Start] begins for it.
//   - Whatever is left of the group of a child that ended is killed.
//   - A process is named by its [Identity], pid and start time. Nothing here
//     signals a process that merely inherited the number.
//
// A process that leaves the group (setsid, as Jupyter kernels do) is not
// reached by Stop: list it with [Descendants] while its parent lives, and end
// it with [KillAll].
//
// All functions and methods may be called from any goroutine.
//
// # The life of a child
//
//	Start ──▶ running ──exit──▶ exited (a zombie still holds its pid and group)
//	            │                  │ the rest of the group is killed
//	     Stop: TERM, grace, KILL   ▼
//	            └───────────────▶ reaped ──output drained, at most 500 ms──▶ Done
//
// # The thread that children die with
//
// Linux delivers PR_SET_PDEATHSIG when the thread that forked the child ends,
// not when its process does, and the Go runtime ends threads when it likes.
// Children that die with the host are therefore forked from one goroutine that
// is locked to its thread and lives as long as any of them.
package process
