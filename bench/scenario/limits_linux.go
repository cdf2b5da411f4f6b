package scenario

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// thisMachine reads the limits. The host raises its soft limit of descriptors to
// the hard one, so that the hard one counts.
func thisMachine() machine {
	m := machine{files: -1, pids: -1, memory: -1, cpus: runtime.NumCPU()}
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil {
		m.files = int64(min(limit.Max, 1<<62))
	}
	if most, ok := fileNumber("/proc/sys/kernel/pid_max"); ok {
		m.pids = most
		if text, err := os.ReadFile("/proc/loadavg"); err == nil {
			if fields := strings.Fields(string(text)); len(fields) > 3 {
				_, all, _ := strings.Cut(fields[3], "/")
				if n, err := strconv.ParseInt(all, 10, 64); err == nil {
					m.pids -= n
				}
			}
		}
	}
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) > 1 && f[0] == "MemAvailable:" {
				if kib, err := strconv.ParseInt(f[1], 10, 64); err == nil {
					m.memory = kib << 10
				}
			}
		}
	}
	return m
}

func fileNumber(path string) (int64, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}
