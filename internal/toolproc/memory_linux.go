package toolproc

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// mostMapped is the most that a process has had of the address space, in bytes; 0
// when that cannot be found out.
func mostMapped(pid int) uint64 {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(data) {
		if f := bytes.Fields(line); len(f) == 3 && string(f[0]) == "VmPeak:" {
			kib, _ := strconv.ParseUint(string(f[1]), 10, 64)
			return kib << 10
		}
	}
	return 0
}

// oomCount is the count of the processes of a control group that the system has ended
// because there was no memory. The zero value counts nothing.
type oomCount struct {
	file   string
	before int64
}

// countOOM begins to count in the group of a process, of either version.
func countOOM(pid int) oomCount {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		return oomCount{}
	}
	for line := range strings.Lines(string(data)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		file := ""
		switch f[1] {
		case "":
			file = filepath.Join("/sys/fs/cgroup", f[2], "memory.events")
		case "memory":
			file = filepath.Join("/sys/fs/cgroup/memory", f[2], "memory.oom_control")
		}
		if n, ok := oomKills(file); ok {
			return oomCount{file, n}
		}
	}
	return oomCount{}
}

// raised says whether the system has ended one since.
func (c oomCount) raised() bool {
	n, ok := oomKills(c.file)
	return ok && n > c.before
}

func oomKills(file string) (int64, bool) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok {
			n, err := strconv.ParseInt(value, 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
