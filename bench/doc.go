// Package bench measures sessions through package coppice, as a host sees them:
// a new session to its first result, a round trip, and many sessions at once; and
// tools through its launcher, cold and warm, beside a bare process for each run.
// `make bench` runs it briefly, `make bench-full` long enough to compare.
// Figures of these machines are noisy: compare within one run.
package bench
