// Package record is the format of the results of benchmarks: one JSON [File] for
// a run of the suite, with the facts of the machine, one [Result] for each round
// of each scenario, and in it the metrics.
//
// # Guarantees
//
//   - Read accepts what Write wrote. A file of another format is refused with an
//     error that names it; members that are not known are ignored.
//   - A metric has a unit and a direction, so that two files can be compared
//     without knowing the scenario.
package record
