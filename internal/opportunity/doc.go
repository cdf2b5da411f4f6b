// Package opportunity tells whether a process that has not spoken had the chance to: so
// that no verdict of "hung" or "dead" is reached because time passed on a machine that
// had none to give.
//
// A fixed limit says how long a process may be silent. On a machine with too much to do
// it says nothing: the other side waits for a processor, or we do, and its answer lies
// unread. A [Meter] counts the opportunity instead:
//
//	wall time since it began
//	  - what the other side waited for a processor, or a disk   [Subject]
//	  - what this process stood still or ran too late           [Stalls], [Watch]
//	= opportunity, and a [Budget] of that is what is spent
//
// # Guarantees
//
//   - Opportunity is never negative, never more than the time that passed, and never
//     falls. On a machine in order it is the time that passed.
//   - Doubt speaks for the other side: a thread that wants a processor at this moment
//     may have waited since it was last seen asleep, until it is known that it has not.
//   - Our own standing still, for however long, spends nothing: neither of the budget's
//     opportunity nor of its ceiling. After half a second of it or more, the next tenth
//     of a second is not counted either, in which what came meanwhile is read.
//   - No process is waited for for ever: [Budget.Ceiling] ends it.
//   - While a machine sleeps, its monotonic clock, and so all of this, stands still
//     (Linux, macOS); elsewhere a sleep is our own standing still. How long it was is
//     told by [Measure.Slept] on Linux.
//
// # What waiting is
//
// Linux counts for each thread how long it wanted a processor and had none, at the
// moment when it gets one. Until then its state tells: R is running or waiting, and
// what it did not run of the time since its last turn is taken for waiting. State D
// waits for a disk, and heeds no signal; so does a thread in a frozen control group.
// A thread that its control group's limit of processors holds back waits, too, and is
// counted with the others.
//
// A thread that is stopped (SIGSTOP, a debugger: state T) does not wait for a processor.
// The machine owes it nothing, and it gets no time back: whoever stops a process for
// longer than a budget ends it. [Measure.Stopped] tells, for those who decide otherwise.
//
// Of a process with several threads, and of several processes, the thread counts that
// waited most, in each span between two looks. The first thread of a Python process
// runs the cells, but the one that answers is often another, and whoever needs both
// waits for the one that waits. What is counted is so at least what any of them waited;
// it may be more than what the answer waited for, never less but for a chain of
// threads that wait for one another within one span. Only the oldest threads are
// looked at, see [process.MostThreads].
//
// Where the system does not count waits (some sandboxes) the states decide alone, and
// where there is nothing to see at all (other systems, other machines) the opportunity
// is the time in which we listened. [Measure.Known] says which.
//
// # What it counts
//
// A verdict that is put off for a tenth of a second or more, where a fixed limit would
// have ended somebody, is counted: [Postponed] for the process, [Watch.Postponed] for a
// system. [Pressure] says how much the processors are wanted now.
//
// # Cost
//
// A look reads two small files for each thread: 10 to 15 µs of processor time, and so up
// to 0.2 ms for a Jupyter kernel with its twelve, as measured on a virtual machine with
// much to do; [Tree] reads the table of all processes and costs milliseconds. A wait on
// an idle machine takes three looks and one timer. A running [Watch] wakes ten times a
// second, and up to a hundred times while it is late.
//
// # Who uses it, and who should
//
// In use, with one Watch for each system of actors, which the supervisor owns: the
// heartbeat, the pings of kernels and tools, the grace of an interrupted cell, the end
// of a kernel, exit functions, and the outer limits of starts and ends of children; the
// starts of kernels, of fork servers, of gateways and of tools, the heartbeat of a fork
// server, the suspicion against a shared gateway, the look at an interpreter, whether a
// Jupyter kernel that does not answer computes, copies of sessions, the interrupt of a
// session whose side thread does not answer, and the output of one, the end of sessions,
// of fork servers and of tools; the end of a shell command, a warm kernel that is handed
// out, the small requests to a tool; the requests to a Jupyter server of this machine, the
// handshakes, the silence and the new attempts of its connections, and the steps of an
// interrupt there.
//
// With a Watch alone, since no other process is waited for, or none that can be looked at:
// the trials of Doctor, a snapshot of a tree, the flush and the end of sinks, the silence of streams and the
// patience of package client, the lock of a notebook in cmd/internal/httpapi, the end of
// cmd/internal/httpserver, the way to another node in cmd/internal/cli, and the looks and ends of cmd/internal/mcpserver.
//
// [process.Process.Stop] does the same in its own way, below this package. All other
// places that decide by time that a process is dead, hung or gone:
//
//	place                                        limit            budget, and subject
//	internal/jupyter/options.go (WriteTimeout)   30 s             {the same, 5 times that}, the server
//
// That one costs no more than a new connection, on which the message is sent again.
//
// What a caller has set for its call (Request.Timeout, a context) stays wall time, and
// so do bounds against clients (package inbound).
//
// # States of a wait
//
//	Wait ─▶ look ──▶ open ──timer: what is left──▶ look …
//	                  │ done, ctx ─▶ over
//	                  └─ opportunity or ceiling spent ─▶ SpentError
//
// All types but a [Subject] may be used by any goroutine.
package opportunity
