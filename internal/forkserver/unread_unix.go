//go:build unix

package forkserver

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Unread reports whether something is to be read from Main: what the session has sent, or
// its end. The one goroutine that reads may call it.
func (c *Child) Unread() bool {
	ready := 0
	err := c.raw.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		for {
			var err error
			if ready, err = unix.Poll(fds, 0); !errors.Is(err, unix.EINTR) {
				return
			}
		}
	})
	return err != nil || ready != 0 // one that is closed says so when it is read
}
