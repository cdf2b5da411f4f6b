// Package toolcheck validates a tool: twelve checks, from its files to the end
// of its process. It is what a tool has to pass before one relies on it.
//
// # Guarantees
//
//   - Every report has the twelve checks, in order. After the first that fails,
//     those that need what failed are skipped, and say so.
//   - One process serves the checks that need one. It is ended, whatever
//     happens, before [Validate] returns.
//   - The tool can see that this is only a check (PIXIE_VALIDATE=true), and missing
//     secrets are a warning.
//
// Any goroutine may call it.
package toolcheck
