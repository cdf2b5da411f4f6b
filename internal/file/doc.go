// Package file opens files whose names come from outside: from a client, a model, code in a
// cell that has made what is at the path. And it writes files whole.
//
// # Guarantees
//
//   - Only a regular file is opened. A FIFO, a device, a socket or a directory is a
//     [*NotRegularError], at once: opening does not wait for the other end. The check
//     is made on the open file, so that it does not matter who replaces it in the
//     meantime; one before that leaves alone what does something when it is opened.
//   - What is read is bounded, also when the file grows while it is read: more is a
//     [*TooLargeError].
//   - Reading ends with its context, between two pieces of at most 1 MiB.
//   - [Write] replaces a file by a whole one, never by a part of one.
//
// An error of what opens or reads is a *fs.PathError around one of the types above, or
// around what the system says. A single read of a regular file cannot be cut short: on
// a network file system it may take as long as the server likes.
//
// On Windows there is no way to open a file without waiting; there, the open file is
// checked all the same, and the check before that keeps pipes and devices from being
// opened.
//
// The package starts no goroutine of its own and holds nothing. Any goroutine may call
// it.
package file
