// Package hibernate keeps what sessions have in memory in a store while they have no
// kernel, and puts it back for their next call.
//
// # Guarantees
//
//   - The truth. What comes back is listed name by name: kept, lost with its type and the
//     reason, or changed and how. A session that was restored is never said to be kept.
//   - What is kept can be read again: a second interpreter has done so before the first
//     one ends. What it could not read is lost, and said.
//   - A session is kept as a whole or not at all, restored at most once at a time, and a
//     restore that fails leaves what is kept where it is.
//   - What is kept is never older than what the session did last: it is dropped when a
//     kernel has it again, when the session is reset, rewound or closed, and with its
//     workspace.
//   - Whoever's calls the session has served may have it: the owners of what is kept stay
//     its owners when it is restored and kept again, also when the call is gone by then
//     that it was restored for, and it is everyone's once it has served a call without an
//     owner. An owner who leaves ([Keeper.Release]) is no longer one of them.
//   - The session does not stand still while it is written: that is done in a copy.
//
// What libraries and the interpreter hold inside of them (options of pandas, handlers of
// signals, functions for the exit) is as they make it; of it only the random numbers of
// Python and NumPy, the filters of warnings, the environment, the working directory and
// the path of imports are kept.
//
// # States of a session
//
//	live ──Sleep──▶ writing ──read again, kept──▶ asleep ──Wake──▶ live (restored)
//	  ▲                │                            │  ▲
//	  └──refused───────┘                            │  └── the restore failed
//	                                                └──Forget──▶ none
//
// What is kept of a session can be copied for others, in other folders too: [Snapshots].
//
// # Checkpoints
//
// A checkpoint is a record with a name of its own ([Keeper.Save]), which no session's life
// touches: it is there until it is dropped, until the last of its owners leaves or its
// workspace ends, or until it was kept for Options.SavedAge. There are Options.MaxSaved of them
// at most, and none is dropped for another one: what would be too many is refused. One that is
// being restored when it expires is restored all the same. Any session of that workspace may begin with it, any number of times:
//
//	ready ──Begin──▶ beginning ──Wake──▶ restored
//	  │                  │  ▲
//	  │                  │  └── the interpreter failed
//	  └──Close, Leave────┴──Close, Forget──▶ given up
//
// It is ready when an interpreter of its own has read it ([Keeper.Prepare]): what would fail
// does so before anything of the session has ended. What is kept of the session itself is
// dropped when the checkpoint is restored, and not before.
//
// # Goroutines
//
// A [Keeper] owns one for each session that it was told to forget, until what is kept is
// dropped. Close joins them.
package hibernate
