// Package toolcheck validates a tool: twelve checks, from its files to the end
// of its process. It is what a tool has to pass before anybody relies on it.
//
// # Guarantees
//
//   - Every report has the twelve checks, in order. After the first that fails,
//     those that need what failed are skipped, and say so.
//   - One process serves the checks that need one. It is ended, whatever
//     happens, before [Validate] returns.
//   - The tool is told that it is only looked at (PIXIE_VALIDATE=true), and
//     secrets that are missing are a warning.
//
// Any goroutine may call it.
package toolcheck
