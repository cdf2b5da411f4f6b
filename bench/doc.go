// Package bench measures sessions through package coppice, as a host sees them.
//
//	load       calls at times that are fixed beforehand, and their distribution
//	scenario   what is measured: a host with many simultaneous sessions
//	fake       a host with real supervision and pretended interpreters
//	peers      floors, and other ways to have Python run code
//	record     the format of the results
//	report     comparison of two files; Markdown and SVG of one
//	suite      the program behind `make bench` and `make bench-full`
//
// The benchmarks of this package itself are Go benchmarks of single things: tools
// cold and warm, notebooks, host calls, floods (`make bench-go`). Figures of these
// machines are noisy: compare within one run.
package bench
