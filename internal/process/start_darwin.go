package process

import (
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// zombie is SZOMB of sys/proc.h.
const zombie = 5

func startTime(pid int) (string, error) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EIO) {
		return "", fmt.Errorf("process %d: %w", pid, ErrNoProcess) // an empty answer comes as EIO
	}
	if err != nil {
		return "", fmt.Errorf("read the state of process %d: %w", pid, err)
	}
	if int(k.Proc.P_pid) != pid || k.Proc.P_stat == zombie {
		return "", fmt.Errorf("process %d: %w", pid, ErrNoProcess)
	}
	t := k.Proc.P_starttime
	return strconv.FormatInt(t.Sec, 10) + "." + strconv.FormatInt(int64(t.Usec), 10), nil
}
