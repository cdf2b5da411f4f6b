// Package users gives processes users of their own: numbers that no account has, each
// to one at a time. What runs as one cannot read, signal, trace or starve what runs as
// another.
//
// # Guarantees
//
//   - A number is held once on a machine: hosts divide the range among themselves by
//     locks on files, which end with the process that holds them.
//   - A number that comes back has nothing left of it: its processes are killed, all at
//     once, its folder and its shared memory are removed. One of which something stays
//     is not given out again.
//   - Numbers are given out in turn, so that what a process has left in a folder of
//     others is not soon another's. The turn goes on with the next host.
//   - A host that was killed leaves numbers whose processes the next host to take its
//     block ends.
//
// A [Block] belongs to a host and may be used from any goroutine. It takes root, on Linux.
//
// # The life of a number
//
//	free ──Lease──▶ held ──Release, of the last──▶ purged ──▶ free
//	                                                  └─▶ spoilt, until the host ends
package users
