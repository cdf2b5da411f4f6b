// Package cgroup gives sessions control groups of their own, so that
// the system bounds what a session and all that it has started use together,
// counts it, and can end all of it at once.
//
// # Guarantees
//
//   - Only a group that this process may manage is used: its own, when it may be
//     changed and holds nothing but this process and what it has started, or when it
//     is marked as delegated. Everything else is refused with the reason
//     ([UnusableError]), and nothing has been changed then.
//   - A process of a [Group] can end and start processes as it likes: all of them
//     stay in the group, and [Group.Remove] ends them. It is not a prison: code
//     with the rights of the host can leave its group, unless it has no access to the
//     files of the system (package sandbox).
//   - Groups of a host that was killed are found by [Leftovers], and removed by the
//     next [Open] and by [Clean]. The name of a host's folder holds
//     its pid, a hash of its start time, and its pid namespace: what cannot be
//     judged from here is left alone.
//
// # Where groups are
//
// In version 2 of control groups, or, where that has none of the controllers that are
// wanted, in the hierarchies of version 1, one for each controller:
//
//	<own group>                    controllers are passed on to those below
//	├─ coppice-host                this process, moved there: a group that passes
//	│                              controllers on may hold no processes
//	├─ coppice-<pid>-<hash>-<ns>   one for each host
//	│  ├─ 1                        one for each session: [Group]
//	│  └─ 2
//	└─ coppice-<pid>-<hash>-<ns>   another host that was started in coppice-host
//
// In version 1 groups may stand beside processes: nothing is moved, and nothing passed on. Its
// limit of memory ends the biggest process of a group alone; [Options.Whole] leaves it out. A
// process cannot begin in such a group: it enters it.
//
// # The life of a group
//
//	New ──▶ empty ──Join, Dir──▶ populated ──end of its processes──▶ empty
//	          │                      │                                 │
//	          └──────────────────────┴───Remove: kill all, rmdir ──▶ gone
//
// [Tree] and [Group] may be used by any goroutine. There are no goroutines here.
package cgroup
