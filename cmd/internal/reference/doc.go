// Package reference writes the reference pages of the documentation from what they tell
// of: the tree of commands, the Go sources, the OpenAPI document, the metrics.
//
// # Guarantees
//
//   - Each function is a pure one of its input, and the same input makes the same bytes:
//     nothing of the machine, the day or the order of a map is in a page.
//   - A page has an anchor for each thing that it tells of, which stays the same as long as
//     the thing has its name.
//
// The pages are in docs/reference, and a test of package cli holds them against the
// sources; "make docs-reference" writes them.
package reference
