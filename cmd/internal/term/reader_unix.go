//go:build unix

package term

import (
	"os"

	"golang.org/x/sys/unix"
)

// ReaderGone reports whether no one can read what is written to f any more: the
// other end of a pipe or socket is closed. Any goroutine may call it.
func ReaderGone(f *os.File) bool {
	c, err := f.SyscallConn()
	if err != nil {
		return false
	}
	gone := false
	err = c.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd), Events: 0}} //nolint:gosec // descriptors are small
		if n, err := unix.Poll(fds, 0); err == nil && n > 0 {
			gone = fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
		}
	})
	return err == nil && gone
}
