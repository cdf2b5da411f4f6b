// Package rights carries messages with descriptors from one process of this machine to
// another, over a stream socket (SCM_RIGHTS).
//
// It knows nothing of what a message says, nor of who may say it.
//
// # A message
//
//	4 bytes   how long the body is, the lowest byte first
//	4 bytes   how many descriptors come with it, likewise
//	          the body
//
// The descriptors come with the first byte of the head.
//
// # Guarantees
//
//   - [Receive] takes one message, and nothing of the next.
//   - It makes room for no body that is longer than [Bounds] says.
//   - Descriptors that were received are inherited by no child, and closed when Receive
//     returns an error.
//   - A message that has come without all of its descriptors is told from one that is none:
//     [ErrMissing].
//   - None of the files that [Send] sends is closed while it does, and they stay the caller's.
//
// A connection has one sender and one receiver at a time; else any goroutine may call any of
// it. It works on Linux; elsewhere the package is empty.
package rights
