// Package envd is the inside of an E2B sandbox over HTTP: the files and the processes of
// one workspace, as E2B's clients ask for them. GET and POST /files carry what files
// hold; the services filesystem and process (package wire) do the rest, over Connect, in
// JSON or in the binary form.
//
// # Guarantees
//
//   - Only the workspace's folder is read and changed by the files API: see package
//     workspace/files. It is the home of the sandbox: relative paths begin there, and so do
//     those under [Home]. Answers name files by their true paths, which code can open.
//   - A process goes on when the client that started it leaves, until its timeout,
//     its end, or that of the sandbox. Whoever connects to it reads what it prints from then on.
//   - On Linux, python3, python and pip are for a process those of the sessions' interpreter, as far
//     as its folder has them: that comes first in PATH, also in the login shells that clients start
//     for commands and terminals. A PATH that the client sets is left as it is. Clients are told of
//     processes as they asked for them.
//   - A client that is slow holds back the process that it follows, and loses nothing.
//   - What the events of a polled watch take is bounded: the oldest are dropped first.
//   - After [Sandbox.Close] nothing of this package runs for the sandbox.
//
// # What differs from E2B
//
// There is one user, that of the server; asking for another one is refused. A path
// outside of the folder is refused by the files API, though processes may reach it unless
// they are isolated. The metadata of files are their extended attributes, user.e2b.NAME.
//
// All methods may be called from any goroutine.
package envd
