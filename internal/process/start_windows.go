package process

import (
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sys/windows"
)

// stillActive is STILL_ACTIVE of minwinbase.h.
const stillActive = 259

func startTime(pid int) (string, error) {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if errors.Is(err, windows.ERROR_INVALID_PARAMETER) {
		return "", fmt.Errorf("process %d: %w", pid, ErrNoProcess)
	}
	if err != nil {
		return "", fmt.Errorf("open process %d: %w", pid, err)
	}
	defer func() { _ = windows.CloseHandle(h) }()
	var code uint32
	if err := windows.GetExitCodeProcess(h, &code); err != nil {
		return "", fmt.Errorf("read the state of process %d: %w", pid, err)
	}
	if code != stillActive {
		return "", fmt.Errorf("process %d: %w", pid, ErrNoProcess)
	}
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(h, &created, &exited, &kernel, &user); err != nil {
		return "", fmt.Errorf("read the start time of process %d: %w", pid, err)
	}
	return strconv.FormatInt(created.Nanoseconds(), 10), nil
}
