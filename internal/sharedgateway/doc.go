// Package sharedgateway lets the hosts of one user share one local Kernel
// Gateway for each Python environment, and lets sessions outlive their host.
//
// # Guarantees
//
//   - At most one gateway serves a shard of a fingerprint (interpreter and the part
//     of the environment that counts at its start). One of another fingerprint
//     lives beside it: it is neither reused nor ended. Nearly always there is one
//     shard, number 0.
//   - The lock is never held while a gateway is waited for: it is held only to change
//     gateway.json, and while a process is started (about 0.1 s). Whoever finds a
//     gateway that answers takes no lock.
//   - A host that is killed while a gateway of its own starts does no harm: the others
//     wait for that gateway.
//   - A gateway is reused only when its pid AND start time are those that were
//     recorded, it answers with the recorded token, and its fingerprint is ours.
//   - The lock is the system's own (flock). It ends with its holder, however
//     that ended, so that a crash blocks no one, and it cannot be stolen, however slow
//     its holder is. What the holder writes into the file is for people.
//   - A gateway that does not answer is under suspicion, for [Options.Suspicion]
//     while its process lives; only then is it ended and replaced, and every
//     host that uses it hears of it. An answer ends the suspicion, and so does
//     any HTTP status: only silence counts.
//   - Files are 0600, folders 0700. The token is in gateway.json alone.
//   - The hosts of a gateway never have more kernels together than
//     [Options.MaxKernels], which its sockets bear: it counts them itself, from the
//     instant in which one is asked for, and refuses one more. The host that is
//     refused goes on to the next shard.
//
// # Files, in ~/.<brand>/agent/python-gateway
//
//	gateway.json               the gateways: address, token, process, fingerprint
//	gateway.lock               who changes gateway.json: pid, what for, heartbeat
//	hosts/<place>-<id>.lock    one for each host, locked for as long as it lives
//	sessions/<hash>.json       the journal: session key, kernel id, gateway
//	sessions/<hash>.log        what the last call of the session has come to, see package
//	                           estate; the key of its seal is in the journal
//	sessions/<hash>.lock       locked by the host that serves the session now
//	<place>.own                locked by the gateway itself, from before its process
//	                           begins: whoever starts it hands it the open file
//
// The place of a gateway is its fingerprint and, from the second shard on, a dot
// and the shard's number.
//
// # Shards
//
// Each shard is found, started, watched, replaced and ended as if it were alone:
// it has a process, a token, a private directory, a hold and leases of its own,
// and what happens to it concerns its own sessions only. A host asks for the shards in
// the order of their numbers, and for the next when a gateway refuses a kernel; that
// alone decides. So two hosts that need a further one at the same instant
// meet at the same number, where one of them starts it. A host that has nothing
// left on a shard but the first gives its lease back (package kernel/jupyter), and
// the gateway ends itself like any that is not used. The journal names the shard
// of a kept session.
//
// # Nothing is left behind
//
// The gateway outlives the host that started it, so it looks after itself
// (gateway.py of package kernelserver). Each second it tries the locks of the
// hosts: one that can be had belongs to a host that has ended. A kernel carries
// the name of the lease under which it was made; when that lease is gone and no
// journal names the kernel, the gateway ends it. One without hosts and kernels
// ends itself after a while, and takes itself out of the record first, under
// gateway.lock. A host makes its lease before it reads the record: so either the
// gateway sees the lease and stays, or the host does not find the gateway.
//
//	          not recorded             nothing holds <place>.own
//	Acquire ───────────────▶ lock ─▶ record ─▶ begin a process ─▶ unlock ─┐
//	   │                       ▲                                          ▼
//	   │ recorded              └──── its process is gone ◀───────────  starting
//	   ├────▶ its process is gone                            ▲   it answers │
//	   │                                 silent for too long │              ▼
//	   └────▶ answers ─▶ in use ──silence──▶ suspected ──────┘  its process is
//	                       ▲                    │ ended: its    recorded: in use
//	                       └─────an answer──────┘ hosts hear
//	                                              of it
//
// All functions and methods may be called from any goroutine. Sharing works
// where files have flock and processes start times: [Supported].
package sharedgateway
