// Package procs runs programs whose input and output are far away: a client over a
// network, who may leave and come back, or a model.
//
// # Guarantees
//
//   - Everything that a process prints is an event with a number, from 1 without a gap.
//     Whoever reads says after which number, and gets what follows, each once and in
//     order: output as it was written (stdout and stderr each in their own order), the
//     end last.
//   - A reader who is there loses nothing, however slow it is: a process that is faster waits, as it
//     would for a slow terminal. Without a reader it does not wait: the newest output is kept, up to
//     Options.Keep bytes in a file that only this user can read, and one who comes
//     later than that is told, with an [EventGap], up to which number it is gone.
//   - Memory does not depend on how much is printed.
//   - A process, and what it has started in its group, ends with [Process.Stop]. On Linux the process itself ends
//     when the host is killed, and so does all that it has started, also what has left its
//     group and its session, where it has an Owner.
//   - No shell is in between: arguments come as they are.
//
// # The life of a process
//
//	Start ──▶ running ──its end, Stop──▶ over: its output can still be read ──Close──▶ gone
//
// All methods may be called from any goroutine; a [Reader] belongs to one.
package procs
