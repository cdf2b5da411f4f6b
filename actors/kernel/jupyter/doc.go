// Package jupyter is the gateway backend: it makes interpreters that are real
// Jupyter kernels behind a Jupyter Kernel Gateway.
//
// # Guarantees
//
//   - [Backend.Start] returns a kernel whose working directory, environment and
//     import path are set. When it fails, no kernel is left on the server.
//   - At most Options.StartSlots kernels start at once; the others wait.
//   - A kernel that was replaced under its own id (an autorestart of the
//     server) is reported as lost, never as the same state.
//   - [Interpreter.Close] returns nil only when the kernel is known to be gone:
//     the server said so or, on a server of ours, its process has ended; or when
//     its server is one of several and does not answer, since then the kernel cannot
//     be ended.
//   - Of several servers, a session always gets the same one, by rendezvous hashing.
//     A session with a kernel never moves; a new kernel is made on the next server
//     of the session's order while its own is gone.
//   - Of shared gateways, a session gets the first that has room for its kernel, and
//     one more is started when all are full. The end of one costs the kernels on it
//     and no others.
//   - With Options.Record, what a call of a kept session comes to is written down before it is handed
//     on ([Interpreter.Record]), and the id of each request before it is sent. A later host of the same
//     name goes on with the call: no event twice, none missing that is not told, and no cell twice. That
//     takes a kernel that numbers what it sends; the calls of others end with their host, and
//     their cells do not.
//
// The mechanisms are in internal/jupyter (the protocol) and
// internal/kernelserver (the server's process); this package puts them
// behind the interface of package kernel.
package jupyter
