// Package scenario holds what is measured: each [Scenario] drives a host with many
// simultaneous sessions in one way, and returns its metrics.
//
//	Setup ──▶ start a Host ──▶ warm up ──▶ load.Run(plan) ──▶ record.Result ──▶ shut down
//
// A host is package coppice's, on the runner or the gateway backend, or package
// bench/fake's, which has real supervision and pretended interpreters.
//
// # Guarantees
//
//   - Every call is checked: one result, its own, of the outcome that the code
//     asks for. A scenario with a wrong or missing answer fails; its figures do
//     not count.
//   - Latencies of calls that come from many callers are measured from the instant
//     at which they were due (see package load).
//   - What a scenario started has ended when Run returns, also when ctx ended: the
//     host is shut down, and a shutdown that leaves something fails the scenario.
//
// Run may be called from any goroutine; two at once disturb each other's figures.
package scenario
