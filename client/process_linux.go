package client

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// ProcessBegan is when a process began, in ticks since the system's start; 0 when
// it is not known. With its id that names a process for good. Other systems
// always answer 0.
func ProcessBegan(pid int) uint64 {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The name of the program stands in brackets, and may hold anything.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const starttime = 22 - 3 // as proc(5) counts, from the field after the name
	if len(fields) <= starttime {
		return 0
	}
	n, err := strconv.ParseUint(string(fields[starttime]), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
