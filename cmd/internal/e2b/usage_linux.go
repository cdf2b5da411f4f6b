package e2b

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// ticks is how many the kernel counts in a second for user programs, on every
// architecture that Go runs on.
const ticks = 100

// used is how long a process has computed, in seconds, and how much memory of it is
// resident, in bytes; 0 where it is not known.
func used(pid int) (seconds float64, resident int64) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0
	}
	const utime, stime, rss = 14 - 3, 15 - 3, 24 - 3 // as proc(5) counts, from the field after the name
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	number := func(at int) int64 {
		if at >= len(fields) {
			return 0
		}
		n, _ := strconv.ParseInt(string(fields[at]), 10, 64) // 0 when it is none
		return n
	}
	return float64(number(utime)+number(stime)) / ticks, number(rss) * int64(os.Getpagesize())
}

// memoryTotal is how much memory the machine has, in bytes.
func memoryTotal() int64 {
	info, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(info) {
		fields := bytes.Fields(line)
		if len(fields) < 2 || string(fields[0]) != "MemTotal:" {
			continue
		}
		n, _ := strconv.ParseInt(string(fields[1]), 10, 64) // 0 when it is none
		return n << 10
	}
	return 0
}

// diskTotal is how large the file system of a folder is, in bytes.
func diskTotal(dir string) int64 {
	var fs syscall.Statfs_t
	if syscall.Statfs(dir, &fs) != nil {
		return 0
	}
	return int64(fs.Blocks) * fs.Bsize //nolint:gosec,unconvert // no file system is that large; Bsize differs by architecture
}

// children names the processes that a process has started.
func children(pid int) []string {
	// task/*/children leaves out some when others end meanwhile; of all processes, one that
	// lives is always listed.
	all, err := os.ReadDir("/proc")
	if err != nil {
		return nil // there is no way to know
	}
	var names []string
	for _, one := range all {
		if _, err := strconv.Atoi(one.Name()); err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + one.Name() + "/stat")
		if err != nil {
			continue // it has gone
		}
		before, after := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')') // its name may hold anything
		fields := bytes.Fields(stat[after+1:])
		const state, parent, threads = 0, 1, 17 // fields 3, 4 and 20 of proc(5)
		if len(fields) <= threads || string(fields[parent]) != strconv.Itoa(pid) {
			continue
		}
		if s := fields[state][0]; s == 'X' || s == 'Z' && string(fields[threads]) == "1" {
			continue // it has ended; of a zombie with more threads the first has
		}
		// One that is just becoming its program has no command line, and lives all the same.
		line, _ := os.ReadFile("/proc/" + one.Name() + "/cmdline")
		if line = bytes.TrimRight(bytes.ReplaceAll(line, []byte{0}, []byte{' '}), " "); len(line) == 0 {
			line = stat[before+1 : after]
		}
		names = append(names, fmt.Sprintf("%.80q (process %s)", line, one.Name()))
	}
	return names
}
