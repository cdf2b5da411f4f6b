// Package machine says what this machine allows a process of this user: open
// files, processes, memory, room for temporary files; and which files of a folder
// others can read.
//
// # Guarantees
//
//   - Nothing is changed, nothing is started, and no function waits for more than
//     a file system.
//   - What the system does not report is left out of the answer (0 in [Limits]): a
//     zero is never a limit.
//
// All functions may be called from any goroutine.
package machine
