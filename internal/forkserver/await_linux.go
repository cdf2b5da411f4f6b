package forkserver

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/coppice-run/coppice/internal/process"
)

// awaitEnd returns when the process is gone. It waits in the runtime's poller
// and costs no thread.
func awaitEnd(id process.Identity) {
	fd, err := unix.PidfdOpen(id.PID, unix.PIDFD_NONBLOCK)
	if err != nil {
		pollEnd(id) // it has ended, or the system has no pidfds
		return
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	defer func() { _ = f.Close() }()
	if process.Ended(id) {
		return // the number was given to another process, which the descriptor stands for
	}
	raw, err := f.SyscallConn()
	if err == nil {
		err = raw.Read(func(fd uintptr) bool {
			fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			n, err := unix.Poll(fds, 0)
			return err == nil && n > 0
		})
	}
	if err != nil {
		pollEnd(id)
	}
}
