//go:build !race

package sim_test

// raceEnabled says that the race detector is on: everything takes about ten
// times as long.
const raceEnabled = false
