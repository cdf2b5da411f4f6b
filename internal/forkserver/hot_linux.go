package forkserver

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// hotWait is how long a read waits in the system call before it waits in the
// runtime's poller.
const hotWait = 200 * time.Microsecond

// readMain reads from Main. A short cell answers within microseconds: its reader
// waits for it in the kernel, which wakes it on the same processor, in half the
// time that the way through the runtime's poller and another processor takes.
// One that takes longer costs no thread.
func (c *Child) readMain(p []byte) (int, error) {
	n, waited := 0, false
	var err error
	outer := c.raw.Read(func(fd uintptr) bool {
		for {
			n, err = syscall.Read(int(fd), p)
			switch {
			case errors.Is(err, syscall.EINTR):
				continue
			case !errors.Is(err, syscall.EAGAIN):
				return true
			case waited:
				return false
			}
			waited = true
			wait := unix.NsecToTimespec(int64(hotWait))
			fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			if ready, err := unix.Ppoll(fds, &wait, nil); ready == 0 || err != nil {
				return false
			}
		}
	})
	switch {
	case outer != nil:
		return 0, outer
	case err != nil:
		return 0, fmt.Errorf("read from the session: %w", os.NewSyscallError("read", err))
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	return n, nil
}
