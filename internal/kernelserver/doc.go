// Package kernelserver runs a Jupyter Kernel Gateway of our own on the loopback
// interface: one process that makes Jupyter kernels over REST and WebSocket.
//
// # Guarantees
//
//   - It listens on 127.0.0.1 alone and answers nothing without its token. The
//     token reaches it through its environment: it is in no argument, no log, no
//     error, and not in the environment of a kernel.
//   - [Launch] returns a server that has answered, with our token and our
//     kernelspec. Or it returns an error with the end of what the server printed, and
//     leaves nothing behind.
//   - No configuration file of the user is read, and what is written goes to a
//     private directory that [Server.Stop] removes.
//   - After Stop, neither the gateway nor a kernel of it runs.
//   - With an owner ([Options.Owner], on Linux) what kernels have started ends at the
//     latest with the host, in whatever process group and session it is; package process
//     says what an owner does not reach. A gateway that hosts share has none: what its
//     kernels have started in a session of their own stays.
//   - A kernel can read the environment of its gateway (/proc), as any process of the
//     user can: that of the kernels, and the token; with [Options.Rules] from Landlock on it
//     cannot, where Linux has scopes (6.12).
//   - With Options.Rules, gateway and kernels are confined from their first instruction, and so is
//     all that they start. What decides how kernels start is theirs to read alone. The
//     gateway listens on a socket that it is given, and Launch fails rather than to start
//     one without the rules.
//   - On the rung gvisor it listens nowhere: [Server.Dialer] makes a connection and hands one end
//     of it in, [Server.Listener] accepts those on which kernels call the host, and nobody else reaches
//     it. Its first process is the gateway, with which all of it ends; a kernel, which has no number
//     here, is ended by [Server.End]. Kernels are not kept from one another, nor from the token. What code behind the
//     wall says on these sockets makes the host open as many connections, one at a time, and no more.
//   - On Linux the gateway is killed when the host dies, and a kernel when the
//     gateway does, also when it is stuck in native code. Elsewhere kernels
//     notice by themselves that the gateway is gone, within seconds.
//   - On Linux a kernel whose code has opened as many files as it may does not end when the gateway
//     opens a connection to it: where few descriptors are left, its limit is raised first, as far as
//     the hard one (room.py). Code that tries again and again to open more can be quicker; and where
//     there is a filter of system calls the server may change no other process's limits, so that such a
//     kernel ends.
//
// Where the interpreter has Jupyter Server alone, that is run in its place
// (server.py), with the same guarantees.
//
// A kernel of ours listens before it imports, does not load debugpy, and prepares
// itself for its hosts while it comes up (package pysrc, KernelModules): the first
// compiles what all use. What fails of that is left to ipykernel and to the host.
//
// # Kernels that are forked
//
// With [Options.Fork], on Linux, kernels are forked from a process that has imported what
// they need (zygote.py), for a provisioner in the gateway (forks.py).
//
//   - A forked kernel has what one that is spawned has: the gateway for its parent, a
//     session and a process group of its own, the working directory, environment,
//     limits, signals, file mode mask and descriptors, and the arguments by which it is found;
//     /proc shows its own environment. Its end is told with its exit status.
//   - At most one kernel comes of one request: one that the gateway has given up
//     waiting for ends before it has opened its sockets.
//   - No kernel ends with the process that it was forked from, which ends with the gateway.
//   - A kernel never has another version of a package than is on disk when it starts,
//     as far as times and sizes of files tell.
//   - What cannot be forked is spawned, and the gateway logs each reason once.
//   - While a kernel is forked, a process below the gateway that loses its parent in that
//     instant becomes the gateway's child. When it has ended and nobody else has waited for
//     it, the gateway does.
//
// Forked kernels share the random addresses of their memory and the seed of hash.
//
//	begin ──▶ loading ──"ready"──▶ ready ──packages changed──▶ another is begun
//	             │                   │ it ended, or did not answer: another is begun
//	             └─ it ended twice, or cannot fork: over, kernels are spawned
//
// [NewShared] is for a gateway that outlives its host; package sharedgateway says who
// looks after it.
//
// All functions and methods may be called from any goroutine.
//
// # The life of a server
//
//	Launch ──▶ starting ──GET /api/kernelspecs answers──▶ running ──Stop──▶ stopping ──▶ gone
//	             │  ▲                                        │
//	             │  └─ its port was taken: again,            └─ it ended by itself: Done
//	             │     with another port and token              is closed, Err says why,
//	             └─ it ended, or time is up: an error           Stop still cleans up
//
// # What reaches a kernel
//
// A POST to /api/kernels with an "env" object makes the gateway build the
// environment of the kernel from scratch: PATH, the names that it got at its start,
// and what the object may carry. Without one, the kernel gets all of
// the gateway's environment, or by a race that of another request. Every POST
// must therefore carry what [Server.KernelEnv] returns, also when it is empty.
package kernelserver
