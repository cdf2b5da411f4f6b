// Package outlive kills hosts whose sessions are to outlive them, with SIGKILL, and looks
// what the next host has: the sessions with their variables, and the calls that ran, of
// which no event is missing or twice.
//
// The hosts that are killed are the test binary in another role. COPPICE_TEST_FULL=1 runs
// the long form: 200 sessions, and rounds.
package outlive
