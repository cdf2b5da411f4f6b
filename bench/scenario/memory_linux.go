package scenario

import (
	"bytes"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"syscall"
)

// proportional returns the memory of a process in bytes, with its part of what it
// shares (PSS), 0 when the process is gone.
func proportional(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(text) {
		if f := bytes.Fields(line); len(f) == 3 && string(f[0]) == "Pss:" {
			kib, err := strconv.ParseInt(string(f[1]), 10, 64)
			if err != nil {
				return 0
			}
			return kib << 10
		}
	}
	return 0
}

// ownMemory returns that of this process, after a collection.
func ownMemory() int64 {
	debug.FreeOSMemory()
	return proportional(os.Getpid())
}

// residentNow returns the resident memory of this process as it is.
func residentNow() int64 {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(data)
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// onDisk is how much room a file takes there, in bytes; 0 where there is none.
func onDisk(path string) int64 {
	const block = 512
	var told syscall.Stat_t
	if syscall.Stat(path, &told) != nil {
		return 0
	}
	return told.Blocks * block
}
