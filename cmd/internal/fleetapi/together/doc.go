// Package together makes one answer of what the nodes of a fleet have answered: one list, one tree,
// one overview.
//
// # Guarantees
//
//   - What is at a node says at which. What is kept where all nodes have it stands once, and at none.
//   - A node that has given no answer is named in the tree and in the overview.
//   - It has no state and starts nothing. Any goroutine may call its functions.
package together
