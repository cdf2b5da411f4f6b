// Package sim simulates the tree of a gateway and its kernel actors, with the
// real supervisor and the real strategies, over interpreters that are only
// pretended, in the virtual time of testing/synctest. It has no code but tests.
//
// A schedule is made from a seed: which calls are submitted when, which are
// cancelled, which interpreters crash or freeze, who has no processor, who pins, resets and closes
// what, how long each start takes and whether it fails. All of it is fixed
// before the run; what the seed does not fix is the order in which goroutines
// run that are woken at the same virtual instant.
//
//	go test ./test/sim -run Sim                 a set of seeds
//	go test ./test/sim -run Sim -seed 4711      one seed; with -v its whole history
//	COPPICE_SIM_SEEDS=5000 go test ./test/sim -run Sim
//	COPPICE_TEST_FULL=1 go test ./test/sim -run Soak    the long form of the soak
//
// A run that fails prints its seed and the history of the sessions involved.
//
// # Invariants
//
// They hold at every instant of every schedule, and a number in a failure is
// one of these:
//
//  1. One result. Every Execute gets exactly one Result, it is the call's own,
//     and nothing of the call happens after it: no cell runs, no output leaves.
//  2. Order. The calls of one key that run do so in the order in which they were
//     submitted, and the cells of a call in theirs, one at a time.
//  3. One kernel. A key never has two live interpreters, and none is used that
//     is being closed.
//  4. Once. No cell runs twice.
//  5. Busy is safe. An interpreter is never evicted while it runs a cell.
//  6. Capacity. Live interpreters are never more than the limit. One that starts
//     counts, and so does one that stops until it is gone: the tree may have
//     fewer that can be used, never more that exist.
//  7. Pins. A pinned session is not evicted.
//  8. Truth. What a result says of the state is so: after "kept" the variables
//     of earlier calls were there, with "fresh" none were, and nothing of a
//     state that was called "lost" is seen again. A session that lost its
//     variables is told why.
//  9. Outcomes. What a result says of the cells is so: a cell that is complete
//     ran to its end, one that is pending was never begun; nobody is told
//     "cancelled" or "timeout" who did not ask for it.
//  10. Nothing left. When the tree has ended no interpreter is alive, and no
//     goroutine. The interpreter of a single call ends with the call.
//  11. Nothing unaccounted. Every question of a host is answered, the shutdown
//     reports no leftovers, and supervisor.System.Bugs is empty.
//  12. In time. A call that was cancelled, or whose deadline has passed, is
//     answered within the grace periods that the options give, the time that
//     kernels need to start and to end not counted. It is not begun after it
//     was cancelled. What the host stood still, and what the kernel had no
//     processor, comes on top.
//  13. Patience. No kernel that would have answered is ended for not answering,
//     whoever has no processor, for however long: the host, a kernel, all of them.
//
// TestHibernationHolds has schedules of its own, with sessions that go to disk: a session has
// what it last had, or is told that it has not; it is never given anything older; what is kept
// has no kernel; what cannot be restored stays; and those whose calls it has served may have
// it, and no one else.
package sim
