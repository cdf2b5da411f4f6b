package cgroup

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Of returns the folder of the group of a process. proc is where procfs is; "": /proc.
// The error is an *[UnusableError].
func Of(proc string, pid int) (string, error) {
	if proc == "" {
		proc = "/proc"
	}
	return groupOf(proc, strconv.Itoa(pid))
}

// Members returns the processes of the group with this folder, without those of
// groups below it, nor those that cannot be seen from here.
func Members(dir string) ([]int, error) { return members(dir) }

// OfProcessors returns the folder of the group by which the processors of a process are bounded:
// it may be of version 1, where [Of] is of version 2. proc and the error are as with Of.
func OfProcessors(proc string, pid int) (string, error) {
	if proc == "" {
		proc = "/proc"
	}
	if dir, ok := legacyGroup(proc, strconv.Itoa(pid), CPU); ok {
		return dir, nil
	}
	return Of(proc, pid)
}

// Throttled returns how long the group with this folder was held back because it had
// used up [Limits.Processors], or a limit that somebody else set, added up over
// processors. 0 when it has none, or it is not counted.
func Throttled(dir string) time.Duration {
	b, err := os.ReadFile(filepath.Join(dir, "cpu.stat")) //nolint:gosec // of the system
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, _ := strconv.ParseInt(value, 10, 64)
		switch name {
		case "throttled_usec":
			return time.Duration(n) * time.Microsecond
		case "throttled_time": // of version 1
			return time.Duration(n)
		}
	}
	return 0
}

// Pressure is how long processes of a group waited for a processor.
type Pressure struct {
	// Some is how long one of them or more waited, All how long none of them ran
	// that wanted to.
	Some, All time.Duration
	// Recent is the part of the last ten seconds in which one of them or more waited,
	// from 0 to 1.
	Recent float64
	// Counted says that the system counts this for groups.
	Counted bool
}

// ProcessorPressure returns that of the group with this folder.
func ProcessorPressure(dir string) Pressure { return readPressure(filepath.Join(dir, "cpu.pressure")) }

// MachinePressure returns that of all processes of this machine. proc is where procfs
// is; "": /proc.
func MachinePressure(proc string) Pressure {
	if proc == "" {
		proc = "/proc"
	}
	return readPressure(filepath.Join(proc, "pressure", "cpu"))
}

func readPressure(file string) Pressure {
	b, err := os.ReadFile(file) //nolint:gosec // of the system
	if err != nil {
		return Pressure{}
	}
	return parsePressure(string(b))
}

// parsePressure reads lines like "some avg10=0.11 avg60=0.44 avg300=12.39 total=74",
// the total in microseconds.
func parsePressure(text string) Pressure {
	var p Pressure
	for line := range strings.Lines(text) {
		kind, _, _ := strings.Cut(line, " ")
		_, total, found := strings.Cut(strings.TrimSpace(line), "total=")
		n, err := strconv.ParseInt(total, 10, 64)
		const most = int64(1<<63-1) / int64(time.Microsecond)
		if !found || err != nil || n < 0 || n > most {
			continue
		}
		switch d := time.Duration(n) * time.Microsecond; kind {
		case "some":
			p.Some, p.Counted, p.Recent = d, true, recent(line)
		case "full":
			p.All = d
		}
	}
	return p
}

// recent is the field avg10 of a line, which is in percent.
func recent(line string) float64 {
	_, rest, _ := strings.Cut(line, "avg10=")
	text, _, _ := strings.Cut(rest, " ")
	percent, err := strconv.ParseFloat(text, 64)
	if err != nil || !(percent >= 0 && percent <= 100) {
		return 0
	}
	return percent / 100
}
