// Package temp makes temporary folders that say whose they are, so that those of
// processes that were killed can be removed, and finds the sockets that such processes left.
//
// # Guarantees
//
//   - A folder is closed to other users (mode 0700), and its name holds the pid, a
//     hash of the start time, and the pid namespace of the process that made it. What is put into
//     it cannot change that.
//   - [Clean] removes only what is proved to be left behind: a folder of this user, made
//     in this pid namespace, by a process that has ended. A folder whose maker is not
//     known stays, and a link is not followed. A folder below which something is mounted
//     stays: what that leads to is somebody else's.
//   - [CleanSockets] removes only sockets that refuse a connection and whose process has ended.
//
// Any goroutine may call the functions.
package temp
