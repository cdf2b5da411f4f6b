// Package gateway is the actor in front of one backend: it routes calls
// by session key, spawns and supervises one kernel actor for each key, and owns
// the calls that have not reached a kernel yet.
//
// # Guarantees
//
//   - Every messages.Execute that arrives as work is answered exactly once: by
//     its kernel, or here when it never reaches one (overloaded, draining,
//     start failed, failed for good, its deadline passed, its caller left) or
//     when its kernel's actor ends with the call in hand.
//   - Calls of one key run in the order in which they arrived. A waiter that
//     leaves does not disturb the order of the others.
//   - A call's deadline counts while it waits for other calls and while it
//     runs. It does not count while its kernel starts: the start has a limit of
//     its own. It does count while the process is away that kernels come from: a
//     call waits until that is back, for as long as it has time.
//   - A key has at most one kernel. A reset, an eviction or a restart that
//     meets an arriving call never loses it: it waits and runs on the next
//     kernel.
//   - A call that asks for a reset while that of another call is under way is refused:
//     the two would undo each other. One that waits behind a running call is not.
//   - A session belongs to the owners of its calls, and of what it was restored from. When
//     the last of them leaves, its kernel is ended; the sessions of others are not touched.
//   - When the machine runs out of descriptors or processes while a kernel
//     starts, a few idle kernels are ended to make room, and the start is tried once
//     more.
//   - What became of a session's earlier kernel is remembered, so that a new
//     one can say why it is new.
//
// # Policy
//
// What happens to kernels is one value, that of [Policy]:
//
//	Chain(RestartOnce(), Heartbeat(5s), Pin(Chain(IdleTTL(5m), LRU(4))))
//
// The states of a kernel under it are drawn in package supervisor; the life of
// a call at this gateway:
//
//	Execute ──▶ waiting ──dispatched──▶ running ──▶ answered by the kernel
//	               │                       │
//	               │ deadline, caller left │ deadline, caller left: Interrupt to the kernel
//	               ▼                       │ the kernel's actor ends: lost, or cancelled
//	           withdrawn, answered here ◀──┘
package gateway
