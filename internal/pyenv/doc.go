// Package pyenv finds the Python interpreter of a host, says what reaches it
// of the host's environment, and builds an environment for those who have none.
//
// # Guarantees
//
//   - [Filter] keeps what it lists and nothing else. Names that look like secrets are
//     never kept, whatever prefix they carry.
//   - [Resolve] and [Preflight] change nothing, but for what Resolve keeps in
//     Options.Memory where that is named. They run an interpreter for at
//     most a minute, in a filtered environment. One that is ended by a signal in that
//     time is run again: the signal says nothing about it.
//   - [Setup] may be interrupted at any instant and run again. An environment
//     that it did not finish is never chosen by Resolve.
//   - Setup installs what requirements.txt pins, by hash, from whatever index
//     the user's pip is set up for. The file names no index.
//   - Errors are one or two sentences that name the thing and the next step, and
//     hold no passwords of index URLs.
//
// All functions may be called from any goroutine, and by several processes at
// the same time.
//
// # The states of the managed environment
//
//	         ┌──────────────────────────── Setup again ───────────────┐
//	         ▼                                                        │
//	absent ──▶ incomplete ──pip, check──▶ ready ──interpreter gone──▶ broken
//	         ▲     ▲  └─interrupted─┐       │
//	         │     └────────────────┘       │ other requirements
//	         └─── Setup, in place ◀── outdated
//
// A directory that is not a Python environment is foreign, and Setup refuses it.
//
// Beside an environment DIR lie DIR.lock, held while Setup works, DIR.incomplete,
// there until it has finished, and DIR.tmp, what pip and venv unpack while they work.
package pyenv
