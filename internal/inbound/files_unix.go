//go:build unix

package inbound

import "syscall"

// openFiles is how many descriptors the process may have. It is asked each time,
// since it can be changed from outside.
func openFiles() int {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	return int(min(uint64(l.Cur), 1<<30)) //nolint:unconvert // it is signed on some systems
}
