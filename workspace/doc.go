// Package workspace is what sessions, files and processes belong to together: a folder,
// an environment, limits, isolation, an owner, labels, and an end.
//
// A host that asks for no workspace has what it always had: a session is a name and a
// working directory. A session of a workspace is that within the workspace: sessions of
// two workspaces share nothing, though their names and directories are the same.
//
// # Guarantees
//
//   - A name stands for one workspace at a time. Opening one that is there returns it,
//     and is refused with an *[ExistsError] when it was made otherwise.
//   - The end of a workspace ends everything in it: running calls are answered with
//     the reason, waiting ones are not started, its kernels and its processes are
//     gone, and so is its folder, unless it was given or is to be kept. [Workspace.Done] is closed
//     when all of that has happened; then the name is free.
//   - A workspace begins with an empty folder, unless one is given or one of its name was kept: what
//     a killed host has left is removed, and else stays where it is while the new one gets another
//     folder ([own.Take]).
//   - On Linux that includes what cells and processes have started and left behind, though it has
//     left their groups and sessions, and has no parent left: it has the mark of the
//     workspace ([process.Marked]). When the host is killed, the owner of its processes
//     ends all of that ([process.Owner]). Behind walls, from landlock on, the workspace has
//     an owner of its own, which nothing leaves that cannot signal it, too. On the rung gvisor
//     its sandboxes end, and with them all that is in them.
//   - Nothing begins in a workspace that has ended: it is refused with an *[EndedError]
//     that says why and when it ended. No call slips in between.
//   - It ends when it is asked to, at its end time, when it was idle for as long as it
//     may, when another one needs its place (Max and MaxPerOwner, which spare those that
//     are in use or pinned), when its owner leaves, and with its host. End time and idle time may be
//     changed at any moment, and count from then on as if they had always been so.
//   - What is in use is not idle: a call that runs or waits, a process that
//     runs. Reading and writing files, and the end of either, begin the idle time again.
//   - What its environment may hold of the host's is chosen by name, never more
//     than kernels of the host get: secrets stay out.
//
// # In the tree
//
// One supervisor has the workspaces; each is a supervisor of its own:
//
//	supervisor ─┬─ gateway ── kernels of all sessions
//	            └─ workspaces ─┬─ etl ─┬─ folder        made first, removed last
//	                           │       ├─ fork server   when it has limits or isolation of its own
//	                           │       ├─ kernels       with it: they end before it does
//	                           │       ├─ limits        when all in it together is limited
//	                           │       └─ processes
//	                           └─ …
//
// The kernels stay with the gateway, which counts, evicts, queues and owns them as it
// does all others; where a workspace has limits, isolation or an environment of its own, they come from
// a process of the workspace. Capacity, owners and pins of workspaces are strategies of the
// supervisor "workspaces": one in use is busy there.
//
// # The life of a workspace
//
//	          Open                       Enter
//	(unknown) ────▶ making ────▶ idle ◀───────────▶ in use
//	                  │            │ end time, idle   │ end time, End,
//	                  │ it fails   │ end, End, place  │ owner, shutdown
//	                  ▼            ▼                  ▼
//	               ended ◀───────────── ending: calls, kernels, processes, folder
//
// The methods of [Set] and [Workspace] may be called from any goroutine, but not from
// an actor of the same tree where they take a context.
package workspace
