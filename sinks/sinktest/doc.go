// Package sinktest checks that a sink keeps the contract of sinks.Sink, so that
// a host can check its own:
//
//	func TestMySink(t *testing.T) {
//		sinktest.Run(t, func(t *testing.T) sinks.Sink { return mysink.New(t.TempDir()) })
//	}
//
// What a sink does with the events is its own matter; the suite checks that it takes
// whatever a call can emit, in whatever order, returns when its context
// ends, leaves the events as they are, and shares nothing that a race detector
// would find with another sink of its kind. Run it with -race.
//
// The suite has a test of its own: host_test.go here has a sink as a host may
// write one, and sinks with one mistake each, all of which the suite finds.
//
// The tests of one Run run in parallel; any test may call it.
package sinktest
