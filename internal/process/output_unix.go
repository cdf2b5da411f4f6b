//go:build unix

package process

import (
	"os"
	"syscall"
	"time"
)

// takeLeft reads what lies in a pipe, about so many bytes at most, and does not wait for
// more.
func takeLeft(ring *Ring, pipe *os.File, most int) {
	raw, err := pipe.SyscallConn()
	if err != nil || pipe.SetReadDeadline(time.Time{}) != nil {
		return
	}
	buf := make([]byte, 64<<10)
	for taken := 0; taken < most; {
		n := 0
		err := raw.Read(func(fd uintptr) bool {
			for {
				n, err = syscall.Read(int(fd), buf)
				if err != syscall.EINTR { //nolint:errorlint // it is the number itself
					return true // also when there is nothing: that is the end
				}
			}
		})
		if err != nil || n <= 0 {
			return
		}
		_, _ = ring.Write(buf[:n]) // a ring takes everything
		taken += n
	}
}
