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
//   - What cannot be looked at has not ended ([Ended]), and is not killed ([Alive]).
//   - A process goes on for as long as one of its threads does.
//
// A process that leaves the group (setsid, as Jupyter kernels do) is not
// reached by Stop: list it with [Descendants] while its parent lives, and end
// it with [KillAll], or give the child an [Owner].
//
// # Who owns what a child starts
//
// With an [Owner], on Linux, whatever descends from a child ends at the latest with the
// host: what has left its group and its session, what was forked twice, what has an
// environment of its own. That holds for a host that ends in order ([Owner.Close]) and
// for one that is killed with SIGKILL, which the owner learns at once. It needs no
// control group and no privilege. It does not reach
//
//   - what was started by asking a program that was there before, such as systemd,
//     cron, at or a container runtime: that does not descend from the child;
//   - a process that has become another user's (setuid), which it may not signal;
//   - what has left its group and lost its parent, when both processes that an owner
//     consists of are stopped by a signal when the host is killed, or were killed in the
//     moment before: the system makes that a child of the next process above. Where they
//     were killed earlier, an heir has taken their place, which finds what was below them
//     by its mark ([Mark]). Children of the owner end with the one that works even then,
//     and while the host lives also what is in their groups;
//   - processes that fork faster than they are found and killed, for 10 s.
//
// Between the end of a child and that of its owner, what has left the child's group
// runs on; [Marked] finds that, for who marked the child.
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
