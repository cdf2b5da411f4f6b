package machine

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Look reads the limits. tempDir is where temporary files go.
func Look(tempDir string) Limits {
	l := Limits{TempDir: tempDir, OpenFiles: hard(unix.RLIMIT_NOFILE), Processes: hard(unix.RLIMIT_NPROC)}
	l.pids("/proc", cgroups("/proc/self/cgroup", "/sys/fs/cgroup"))
	l.memory("/proc/meminfo", cgroups("/proc/self/cgroup", "/sys/fs/cgroup"))
	var fs syscall.Statfs_t
	if syscall.Statfs(tempDir, &fs) == nil && fs.Bsize > 0 {
		l.Temp = fs.Bavail * uint64(fs.Bsize)
	}
	return l
}

// Memory returns how much memory there is and how much of it is available, in bytes: what
// Look says of it, at a fraction of the cost. 0: the system does not tell.
func Memory() (all, available uint64) {
	var l Limits
	l.memory("/proc/meminfo", cgroups("/proc/self/cgroup", "/sys/fs/cgroup"))
	return l.Memory, l.Available
}

// hard returns a hard limit; 0 when it is unlimited.
func hard(resource int) uint64 {
	var r unix.Rlimit
	if unix.Getrlimit(resource, &r) != nil || r.Max == math.MaxUint64 {
		return 0
	}
	return r.Max
}

// pids finds the smallest bound on the number of processes.
func (l *Limits) pids(proc string, groups []string) {
	file := filepath.Join(proc, "sys/kernel/pid_max")
	if n, ok := number(file); ok {
		l.PIDs, l.PIDsFrom = n, file
		l.PIDsUsed = threads(proc)
	}
	for _, g := range groups {
		file := filepath.Join(g, "pids.max")
		n, ok := number(file)
		if !ok || l.PIDs != 0 && n >= l.PIDs {
			continue
		}
		l.PIDs, l.PIDsFrom = n, file
		if used, ok := number(filepath.Join(g, "pids.current")); ok {
			l.PIDsUsed = used
		}
	}
}

// threads counts what takes a pid: /proc/loadavg has running/total.
func threads(proc string) uint64 {
	b, err := os.ReadFile(filepath.Join(proc, "loadavg"))
	if err != nil {
		return 0
	}
	f := strings.Fields(string(b))
	if len(f) < 4 {
		return 0
	}
	_, total, _ := strings.Cut(f[3], "/")
	n, _ := strconv.ParseUint(total, 10, 64)
	return n
}

// memory finds the smallest bound on memory, and what of it is free.
func (l *Limits) memory(meminfo string, groups []string) {
	b, err := os.ReadFile(meminfo)
	if err == nil {
		l.MemoryFrom = meminfo
		for line := range bytes.Lines(b) {
			f := strings.Fields(string(line))
			if len(f) < 2 {
				continue
			}
			kib, _ := strconv.ParseUint(f[1], 10, 64)
			switch f[0] {
			case "MemTotal:":
				l.Memory = kib << 10
			case "MemAvailable:":
				l.Available = kib << 10
			}
			if l.Available > 0 { // what follows is not needed
				break
			}
		}
	}
	for _, g := range groups {
		file := filepath.Join(g, "memory.max")
		limit, ok := number(file)
		if !ok || l.Memory != 0 && limit >= l.Memory {
			continue
		}
		l.Memory, l.MemoryFrom = limit, file
		used, _ := number(filepath.Join(g, "memory.current"))
		free := limit - min(limit, used)
		if l.Available == 0 || free < l.Available {
			l.Available = free
		}
	}
}

// cgroups returns the folders of the control groups (version 2) that this
// process is in, from its own to the root's.
func cgroups(file, root string) []string {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(b)) {
		path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !ok {
			continue
		}
		var dirs []string
		for path = filepath.Clean("/" + path); ; path = filepath.Dir(path) {
			dirs = append(dirs, filepath.Join(root, path))
			if path == "/" {
				return dirs
			}
		}
	}
	return nil
}

// number reads a file with one number; "max" does not count as one.
func number(file string) (uint64, bool) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	return n, err == nil
}
