// Package arch holds the shape of the repository as rules that a test runs:
// which package may import which, where a few dangerous calls may stand, that
// everything exported is documented, that files stay small.
//
// # Guarantees
//
//   - A rule is a pure function from a [Tree] to violations. It reads nothing.
//   - [Load] reads every file itself and starts no other program. The test
//     cache of the go command records the files that a test opens, so that a
//     cached "ok" is never older than the tree it judges; a check that runs
//     "go list" would be served from the cache while the tree changed.
//   - Each rule is tested with planted violations: a rule that finds nothing
//     anywhere fails the build.
//
// The tables in layers.go are meant to be read: they are the import rules of
// ARCHITECTURE.md in the form that is enforced.
package arch
