// Package strategy decides what becomes of the children of a supervisor. Its
// values are pure: they have no state, no clock and no I/O, and they cannot
// see the supervisor that obeys them. Each gets a [View] of the children and
// an [Event], and answers with directives; the same view and event give the
// same answer. What a supervisor does can be read where its strategy is made:
//
//	strategy.Chain(
//		strategy.RestartOnce(),
//		strategy.Heartbeat(5*time.Second),
//		strategy.Pin(strategy.Chain(strategy.IdleTTL(5*time.Minute), strategy.LRU(4))),
//	)
//
// # What there is
//
//   - Failures, one child at a time: [RestartOnce], [Intensity], [Backoff].
//   - Groups, as in Erlang/OTP: [OneForOne], [OneForAll], [RestForOne] restart
//     children by their [RestartType]; [EscalateAfter] and [AutoShutdown] end
//     the supervisor.
//   - Health: [Heartbeat].
//   - Capacity: [IdleTTL], [MaxRSS] end idle children; [LRU], [LRUQueue] and
//     [Quota] decide who may start.
//   - Composition: [Chain] asks several and takes the most severe answer,
//     [For] restricts one to a kind of children, [Pin] exempts pinned children
//     from eviction.
//
// A kernel gateway is a policy of RestartOnce, Heartbeat and the capacities, as
// above, with Backoff for its server. Intensity and the groups are the rest of
// the vocabulary that people know from OTP. Their tests are OTP's own cases; a
// supervisor pays nothing for them, because it starts and stops ordered
// children in groups anyway.
//
// # Writing one
//
// Implement [Strategy], and [TTLs] if it ends children by time. Read the time
// from [View.Now] only. A strategy that looks at all children on every event
// costs as much as there are children; those in this package that run often
// ask the view's [Index] instead, where it has one.
package strategy
