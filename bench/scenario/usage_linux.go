package scenario

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

// use is what a process has of what is limited.
type use struct{ files, threads int }

// useOf reads that of a process, of this one for 0.
func useOf(pid int) (use, bool) {
	dir := procOf(pid)
	files, err := os.ReadDir(dir + "/fd")
	if err != nil {
		return use{}, false
	}
	threads, err := os.ReadDir(dir + "/task")
	return use{len(files), len(threads)}, err == nil
}

func procOf(pid int) string {
	if pid == 0 {
		return "/proc/self"
	}
	return fmt.Sprintf("/proc/%d", pid)
}

// cpuTime is the processor time of all threads of a process, 0 when it is gone.
// Its precision is that of the scheduler: /proc/PID/stat counts in hundredths of a
// second, and an idle session takes less than that.
func cpuTime(pid int) time.Duration {
	dir := procOf(pid) + "/task"
	threads, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	var all time.Duration
	for _, t := range threads {
		text, err := os.ReadFile(dir + "/" + t.Name() + "/schedstat")
		if err != nil {
			continue // it has ended
		}
		if f := bytes.Fields(text); len(f) > 0 {
			if ns, err := strconv.ParseInt(string(f[0]), 10, 64); err == nil {
				all += time.Duration(ns)
			}
		}
	}
	return all
}

// ownCPU is the processor time of this process.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
