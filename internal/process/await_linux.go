package process

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coppice-run/coppice/internal/deadline"
)

// awaitTold waits until the system reports that a process has ended or until the
// end of ctx. It returns false, at once, when the system will not tell.
func awaitTold(ctx context.Context, id Identity) bool {
	fd, err := unix.PidfdOpen(id.PID, 0)
	if err != nil {
		return false
	}
	if unix.SetNonblock(fd, true) != nil {
		_ = unix.Close(fd)
		return false
	}
	// A descriptor that does not block is served by the poller of the Go runtime:
	// no thread waits with it.
	f := os.NewFile(uintptr(fd), "pidfd")
	defer func() { _ = f.Close() }()
	if Ended(id) { // the number may have gone to another process before it was opened
		return true
	}
	conn, err := f.SyscallConn()
	if err != nil || f.SetReadDeadline(time.Time{}) != nil {
		return false
	}
	stop := deadline.Past(ctx, f.SetReadDeadline) // ends the Read below
	defer stop()
	ended := false
	err = conn.Read(func(fd uintptr) bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0) //nolint:gosec // a descriptor is small
		ended = err == nil && n > 0
		return ended || (err != nil && err != unix.EINTR)
	})
	return ended || (err != nil && ctx.Err() != nil)
}
