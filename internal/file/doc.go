// Package file opens the files that somebody else names: a client, a model, code in a
// cell that has made what is at the path. And it writes files whole.
//
// # Guarantees
//
//   - Only a regular file is opened. A FIFO, a device, a socket or a directory is a
//     [*NotRegularError], at once: opening waits for nobody at the other end. What is
//     open is looked at, so that it does not matter who replaces it meanwhile; a look
//     before that leaves alone what does something when it is opened.
//   - What is read is bounded, also when the file grows while it is read: more is a
//     [*TooLargeError].
//   - Reading ends with its context, between two pieces of at most 1 MiB.
//   - [Write] puts a whole file in the place of another, and never a part of one.
//
// An error of what opens or reads is a *fs.PathError around one of the types above, or
// around what the system says. What this cannot do: end one read of a regular file,
// which on a network file system may take as long as the server likes.
//
// On Windows there is no way to open a file without waiting; there, what is open is
// looked at all the same, and the look before keeps pipes and devices from being
// opened.
//
// The package starts no goroutine of its own and holds nothing. Any goroutine may call
// it.
package file
