// Package toolbox is a folder of tools on disk: what is in it, what was noted about it,
// and what can be done with it without running its tools.
//
// # Guarantees
//
//   - It remembers nothing about the tools: each question looks at the disk.
//   - The files in which it keeps its notes, the pins and the reports of the validator,
//     are written whole or not at all.
//   - It starts a process only for a set-up, for the validator, and where it is asked
//     for one (Box.Start).
//
// Any goroutine may call it. Package actors/launcher keeps the processes warm.
package toolbox
