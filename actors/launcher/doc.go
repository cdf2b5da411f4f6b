// Package launcher keeps tools warm: programs that answer HTTP on the loopback
// interface, each in a folder with a tool.json. A tool is started by its first run and
// ended when none has come for a while.
//
//	l, err := launcher.Start(ctx, launcher.Options{Dir: "tools"})
//	if err != nil {
//		return err
//	}
//	defer l.Shutdown(context.Background())
//	result, err := l.Run(ctx, launcher.Request{Tool: "shout", Inputs: inputs})
//
// A [Launcher] runs tools. A [Toolbox] is the folder without one: it makes, sets up
// and validates tools. A host of package coppice has a launcher in its own tree, with
// its Options.Launcher. All three may be used from any goroutine.
//
// # Guarantees
//
//   - Every run is answered exactly once.
//   - Callers of a cold tool share one start. A tool that starts, and one that
//     stops, counts in the cap; one with a run in flight is never ended to make
//     room, or because of its age. When no tool can make room, the answer is
//     overloaded, at once.
//   - Each tool is kept warm for a time of its own, counted from the end of its last
//     run. A pin exempts it from making room, not from that time.
//   - A failed start or a crash is not held against the tool: the next run tries
//     again. The reason and the end of standard error are kept.
//   - A run that takes longer than the tool allows, by the clock on the wall, is
//     ended, and has ended when the grace is over too. The time of one run does not
//     count towards another's. Its error names the limit and how long it went on.
//   - A tool that uses more memory than it may is ended, busy or idle, and its state
//     and the events say why.
//   - Runs of a tool that is not concurrent go one after the other, in the order
//     of their arrival, whether they stream or not.
//   - A run that a process never began is given to the next process.
//   - The end of the launcher ends all processes, at the same time.
//   - The callbacks of a stream and of a set-up run in the goroutine that asked for it:
//     a panic there is the caller's, and cancels the run. A panic of the logger costs
//     a tool at most.
//
// # The actor
//
// Behind a Launcher is an actor with one child for each tool, which owns the tool's
// process. What happens to tools is one value:
//
//	Chain(Heartbeat(5s), Pin(Chain(MemoryBudget(0), LRU(5))), WarmKeep(of each tool))
//
// There is no restart in it: a tool that ended is started by the next run.
//
// # Runs and leases
//
// A supervisor gives a child one work at a time, and so holds it busy. Runs of a tool
// may overlap, so what the supervisor sees is a lease: a work that begins when the
// first run arrives and is finished when no run is left. The launcher owns the runs,
// hands them to the tool while its lease lasts, and asks for a new lease when a
// process ended under it:
//
//	Run ─▶ waiting ─lease given, and its turn─▶ in flight ─▶ answered by the tool
//	          │  ▲                                 │
//	          │  └─ the process ended before it began it
//	          ▼                                    ▼
//	       answered here: the start failed,     the process ended: lost, or
//	       overloaded, cancelled, stopped       the limit that it hit
//
// # The life of a tool
//
//	(none) ─lease─▶ starting ─healthy─▶ idle ◀─runs─▶ busy
//	                   │ failed          │ TTL, LRU, hung, stop, it ended
//	                   ▼                 ▼
//	                 (none) ◀──────── stopping: TERM, 5 s, KILL
//
// A run ends early in two steps: the tool is asked to cancel it, and when it has
// not, the process is ended at the end of the grace: TERM, at most 1 s, KILL.
package launcher
