// Package load makes calls at times that are fixed beforehand and records how
// long each took from the instant at which it was due.
//
// A closed loop, which makes the next call when the last one has returned, slows
// down together with what it measures: the calls that a stall would have hit are
// never made, and the percentiles look good (coordinated omission). Here the
// times of a [Plan] are fixed before the first call. A call that is made late,
// because the machine or the generator was busy, counts its lateness, and
// [Sample.Late] tells how much of it was the generator's own.
//
//	Plan ──due──▶ one goroutine for each call ──▶ Recorder ──▶ Summary
//
// # Guarantees
//
//   - Every call of the plan is made once, or counted in Sample.Skipped when ctx
//     ended first. Run returns when the last one has returned.
//   - A latency is measured with the monotonic clock and kept with three
//     significant digits, from 1 us to 1 h (HDR histogram).
//   - The same seed gives the same plan.
//
// A Plan is a value. A [Recorder] may be used from any goroutine.
package load
