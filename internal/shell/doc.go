// Package shell writes what a POSIX shell reads.
//
// # Guarantees
//
//   - [Quote] makes one word of any text: a shell that reads it has that very text, and
//     expands and runs nothing of it. A newline stays one, and a NUL is for no shell.
//
// It has no state; any goroutine may call it.
package shell
