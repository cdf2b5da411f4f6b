package process

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// CountsThreads says whether this system has [Threads].
const CountsThreads = true

// Threads looks at the threads of a process: the one that it began with first, then
// its oldest others, [MostThreads] in all. It costs 10 to 15 µs for each. The error
// is [ErrNoProcess] when the process has ended or its number is another's now.
//
// State is read before the counters: a thread that gets its turn in between is seen
// as one that still wants it, and never as asleep with its wait left out.
func Threads(id Identity) ([]Thread, error) {
	if err := readBoot(); err != nil {
		return nil, unread(id.PID, err)
	}
	dir, err := unix.Open("/proc/"+strconv.Itoa(id.PID)+"/task", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, unread(id.PID, err)
	}
	defer func() { _ = unix.Close(dir) }()
	const enough = 1024 // for the entries of MostThreads, or one stat line
	var room [enough]byte
	names := make([]string, 0, MostThreads)
	for len(names) < MostThreads { // a signal to this process cuts a list short, before its first name perhaps
		n, err := unix.ReadDirent(dir, room[:])
		if err != nil {
			return nil, unread(id.PID, err)
		}
		if n <= 0 {
			break
		}
		_, _, names = unix.ParseDirent(room[:n], MostThreads-len(names), names)
	}
	found := make([]Thread, 0, len(names))
	for _, name := range names {
		tid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		t := Thread{ID: tid}
		b, err := readAt(dir, name+"/stat", room[:])
		if err != nil {
			if err = unread(id.PID, err); errors.Is(err, ErrNoProcess) {
				continue // the thread has ended since
			}
			return nil, err
		}
		if t.State, err = parseThreadState(b); err != nil {
			return nil, fmt.Errorf("read the state of thread %d: %w", tid, err)
		}
		if tid == id.PID {
			s, err := parseStat(b)
			if err != nil || s.ended() || s.startTime() != id.Start {
				return nil, fmt.Errorf("process %d: %w", id.PID, ErrNoProcess)
			}
		}
		var counters [64]byte
		if c, err := readAt(dir, name+"/schedstat", counters[:]); err == nil {
			t.Ran, t.Waited, t.Turns, t.Counted = parseSchedstat(c)
		}
		if !t.Counted {
			if s, err := parseStat(b); err == nil {
				t.Ran = time.Duration(s.cpu) * tick //nolint:gosec // centuries
			}
		}
		found = append(found, t)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("process %d: %w", id.PID, ErrNoProcess)
	}
	return found, nil
}

func unread(pid int, err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("process %d: %w", pid, ErrNoProcess)
	}
	return fmt.Errorf("list the threads of process %d: %w", pid, err)
}

// readAt reads a file that fits into room, without the look-up of a whole path.
func readAt(dir int, name string, room []byte) ([]byte, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	n, err := unix.Read(fd, room)
	_ = unix.Close(fd)
	if err != nil {
		return nil, err
	}
	return room[:n], nil
}

// parseThreadState reads the one letter of a stat line that says it.
func parseThreadState(line []byte) (ThreadState, error) {
	end := bytes.LastIndexByte(line, ')')
	if end < 0 || len(line) < end+len(") S ") {
		return Over, errors.New("no state in the stat line")
	}
	return threadState(line[end+len(") ")]), nil
}

func threadState(letter byte) ThreadState {
	switch letter {
	case 'R':
		return Wanting
	case 'D':
		return OnDisk
	case 'T', 't':
		return Halted
	case 'Z', 'X':
		return Over
	default:
		return Asleep
	}
}

// parseSchedstat reads "ran waited turns", the first two in nanoseconds. A thread
// that lives has had a turn: a kernel that writes zeros does not count.
func parseSchedstat(b []byte) (ran, waited time.Duration, turns uint64, counted bool) {
	var n [3]uint64
	rest := bytes.TrimSuffix(b, []byte("\n"))
	for i := range n {
		digits, after, more := bytes.Cut(rest, []byte(" "))
		var err error
		if n[i], err = strconv.ParseUint(string(digits), 10, 63); err != nil || more != (i < len(n)-1) {
			return 0, 0, 0, false
		}
		rest = after
	}
	if n[2] == 0 {
		return 0, 0, 0, false
	}
	return time.Duration(n[0]), time.Duration(n[1]), n[2], true //nolint:gosec // 63 bits
}
