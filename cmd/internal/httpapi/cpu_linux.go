package httpapi

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// ticks is how many the kernel counts in a second for user programs, on every
// architecture that Go runs on.
const ticks = 100

// cpu is how long a process has computed, in seconds; 0 when it is not known.
func cpu(pid int) float64 {
	if pid <= 0 {
		return 0
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	const utime, stime = 14 - 3, 15 - 3 // as proc(5) counts, from the field after the name
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= stime {
		return 0
	}
	sum := 0.0
	for _, f := range [][]byte{fields[utime], fields[stime]} {
		n, err := strconv.ParseUint(string(f), 10, 64)
		if err != nil {
			return 0
		}
		sum += float64(n) / ticks
	}
	return sum
}
