// Package coordinator lets the hosts of one user share one local Kernel
// Gateway for each Python environment, and lets sessions outlive their host.
//
// # Guarantees
//
//   - At most one gateway serves a fingerprint (interpreter and the part of the
//     environment that counts at its start). One of another fingerprint lives
//     beside it: it is neither reused nor ended.
//   - A gateway is reused only when its pid AND start time are those that were
//     recorded, it answers with the recorded token, and its fingerprint is ours.
//   - The lock is the system's own (flock). It ends with its holder, however
//     that ended, so that a crash blocks nobody, and it cannot be stolen, however
//     slow its holder is. What the holder writes into the file is for people.
//   - A gateway that does not answer is under suspicion, for [Options.Suspicion]
//     while its process lives; only then is it ended and replaced, and every
//     host that uses it hears of it. An answer ends the suspicion, and so does
//     any HTTP status: only silence counts.
//   - Files are 0600, folders 0700. The token is in gateway.json alone.
//
// # Files, in ~/.<brand>/agent/python-gateway
//
//	gateway.json               the gateways: address, token, process, fingerprint
//	gateway.lock               who changes gateway.json: pid, what for, heartbeat
//	hosts/<fingerprint>-<id>.lock    one for each host, locked for as long as it lives
//	sessions/<hash>.json       the journal: session key, kernel id, gateway
//	sessions/<hash>.lock       locked by the host that serves the session now
//	<fingerprint>.own          locked by the gateway itself
//
// # Nothing is left behind
//
// The gateway outlives the host that started it, so it looks after itself
// (gateway.py of package kernelserver). Each second it tries the locks of the
// hosts: one that can be had belongs to a host that has ended. A kernel carries
// the name of the lease under which it was made; when that lease is gone and no
// journal names the kernel, the gateway ends it. A gateway that was started and
// never recorded, because its host was killed, ends with that host's lease. One
// without hosts and kernels ends itself after a while, under gateway.lock, so
// that no host can take it in that instant.
//
//	Acquire ─▶ lock ─▶ recorded? ─no──▶ start ─▶ record ─▶ in use
//	                      │ yes                              │ ▲
//	                      ├─ process gone ─▶ forget, start   │ │ it answers
//	                      └─ answers ─▶ in use      silence  ▼ │
//	                                                     suspected
//	                                                         │ for too long
//	                                                         ▼
//	                                            ended ─▶ hosts hear of it
//
// All functions and methods may be called from any goroutine. Sharing works
// where files have flock and processes start times: [Supported].
package coordinator
