// Package files reads and changes the files of one folder for those who must not reach
// any other: clients over a network, models, the user of a workspace.
//
// # Guarantees
//
//   - Nothing outside of the folder is read, written, listed, made, moved, removed or
//     watched, whatever a path says and whatever stands at it: not by "..", by an
//     absolute path, by a symbolic link, nor by code in the folder that puts one thing
//     in place of another while an operation runs. Every step is taken from an open
//     directory ([os.Root]), so that there is no name left to exchange.
//   - Only regular files are opened. A FIFO, a socket or a device is refused at once;
//     nothing waits for its other end, and opening it does nothing.
//   - A file is written whole or not at all: to a temporary file beside it, which then
//     takes its place. What was there before is replaced and never written to, so that
//     a hard link to a file elsewhere leaves that one as it is. The permission bits of
//     a file that is replaced are kept.
//   - Writing ends at the quota, while it goes on: no more than that is ever stored by
//     this package.
//   - What an operation holds in memory does not depend on the size of a file.
//
// A symbolic link within the folder is followed when it is read and when it stands in
// the middle of a path, as long as it is relative and stays inside; nothing is written
// through one. A path has slashes, is relative to the folder, and has no "..".
//
// # What it does not do
//
// It does not keep code that runs in the folder from anything: that is what isolation
// is for. A directory of another file system that is mounted in the folder is a part
// of it. Where the system has no fsnotify, [Folder.Watch] fails.
//
// # Errors
//
// Every error is an *[Error], which names the operation and the path as it was given,
// around one of: [ErrPath], [ErrOutside], [ErrQuota], [ErrNoSpace], [ErrLink], [ErrNotEmpty],
// [ErrIsDir], [ErrNotDir], a *file.NotRegularError, [fs.ErrNotExist], [fs.ErrExist],
// [fs.ErrPermission], [ErrClosed], the cause of a context, or what else the system says.
//
// # States
//
//	open ──Close──▶ closed: every operation fails with ErrClosed
//
// All methods may be called from any goroutine.
package files
