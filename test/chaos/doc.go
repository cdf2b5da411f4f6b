// Package chaos runs hosts under random signals to every process of theirs, kills them,
// and has package judge, which knows nothing of the host, say what of the results is
// untrue. See chaos_test.go; COPPICE_TEST_FULL=1 makes the run a long one,
// COPPICE_CHAOS_SEED repeats the faults of another, COPPICE_CHAOS_TIME sets its length.
package chaos
