package process

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// boot is the id of this boot, once it was read. It tells the start times of one boot,
// which count from its beginning, from those of the next.
var boot atomic.Pointer[string]

// readBoot reads the id of this boot. The error says that it cannot be read just now.
func readBoot() error {
	if boot.Load() != nil {
		return nil
	}
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if Exhausted(err) {
		return err
	}
	id := strings.TrimSpace(string(b)) // "" where a sandbox hides it: the ticks alone must do
	boot.Store(&id)
	return nil
}

func startTime(pid int) (string, error) {
	s, err := readStat(pid)
	if err != nil {
		return "", err
	}
	if s.ended() {
		return "", fmt.Errorf("process %d: %w", pid, ErrNoProcess)
	}
	return s.startTime(), nil
}

// stat is what is needed of /proc/<pid>/stat (proc_pid_stat(5)).
type stat struct {
	state byte
	ppid  int
	// threads are those that have not ended, and the first one, whether or not it has.
	threads int
	start   uint64 // clock ticks since the boot
	cpu     uint64 // clock ticks spent in user and in system mode
	pages   int64  // that are resident
}

// ended is true of zombies and of the dead. The state is that of the first thread alone,
// which may end before the others (pthread_exit(3) in main): then the process goes on, and
// its number and its children are its own.
func (s stat) ended() bool { return s.state == 'X' || s.state == 'Z' && s.threads <= 1 }

func (s stat) startTime() string { return strconv.FormatUint(s.start, 10) + "@" + *boot.Load() }

func readStat(pid int) (stat, error) {
	if err := readBoot(); err != nil {
		return stat{}, fmt.Errorf("read the state of process %d: %w", pid, err)
	}
	const enough = 2048 // 52 numbers of 20 digits at most, and a name
	var room [enough]byte
	b, err := readShort("/proc/"+strconv.Itoa(pid)+"/stat", room[:])
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return stat{}, fmt.Errorf("process %d: %w", pid, ErrNoProcess)
	}
	if err != nil {
		return stat{}, fmt.Errorf("read the state of process %d: %w", pid, err)
	}
	s, err := parseStat(b)
	if err != nil {
		return stat{}, fmt.Errorf("read the state of process %d: %w", pid, err)
	}
	return s, nil
}

// parseStat reads a line of the form "pid (name) state ppid … start …". The
// name may hold blanks and parentheses: it ends at the last one.
func parseStat(b []byte) (stat, error) {
	end := bytes.LastIndexByte(b, ')')
	if end < 0 {
		return stat{}, errors.New("no process name in the stat line")
	}
	// bytes.Fields would have the line, and the list of its fields, on the heap: this is read for
	// each process of the machine, while sessions are to answer.
	const least, most = 20, 22
	var f [most][]byte
	n := 0
	for rest := bytes.TrimSpace(b[end+1:]); n < most && len(rest) > 0; n++ {
		f[n] = rest
		if at := bytes.IndexByte(rest, ' '); at >= 0 {
			f[n] = rest[:at]
		}
		rest = bytes.TrimLeft(rest[len(f[n]):], " ")
	}
	if n < least || len(f[0]) != 1 {
		return stat{}, fmt.Errorf("%d fields after the name in the stat line", n)
	}
	ppid, err := strconv.Atoi(string(f[1]))
	if err != nil {
		return stat{}, fmt.Errorf("parent in the stat line: %w", err)
	}
	start, err := strconv.ParseUint(string(f[19]), 10, 64)
	if err != nil {
		return stat{}, fmt.Errorf("start time in the stat line: %w", err)
	}
	user, err := strconv.ParseUint(string(f[11]), 10, 64)
	if err != nil {
		return stat{}, fmt.Errorf("user time in the stat line: %w", err)
	}
	system, err := strconv.ParseUint(string(f[12]), 10, 64)
	if err != nil {
		return stat{}, fmt.Errorf("system time in the stat line: %w", err)
	}
	threads, err := strconv.Atoi(string(f[17]))
	if err != nil {
		return stat{}, fmt.Errorf("threads in the stat line: %w", err)
	}
	var pages int64
	if n == most {
		pages, _ = strconv.ParseInt(string(f[most-1]), 10, 64) // 0: it has none that it could tell of
	}
	return stat{state: f[0][0], ppid: ppid, threads: threads, start: start, cpu: user + system, pages: pages}, nil
}

// Look returns what a process is doing.
func Look(pid int) (Activity, error) {
	s, err := readStat(pid)
	if err != nil {
		return Activity{}, err
	}
	if s.ended() {
		return Activity{}, fmt.Errorf("process %d: %w", pid, ErrNoProcess)
	}
	return Activity{Stopped: s.state == 'T' || s.state == 't', RSS: s.pages * int64(os.Getpagesize()), Threads: s.threads}, nil
}

// RSS returns the resident memory of a process in bytes.
func RSS(pid int) (int64, error) {
	const enough = 256 // seven numbers
	var room [enough]byte
	b, err := readShort("/proc/"+strconv.Itoa(pid)+"/statm", room[:])
	if bytes.HasPrefix(b, []byte("0 ")) { // it has none that it could tell of
		b, err = readShort(ofMemory(pid, "statm"), room[:])
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return 0, fmt.Errorf("process %d: %w", pid, ErrNoProcess)
	}
	if err != nil {
		return 0, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	_, rest, ok := bytes.Cut(b, []byte(" ")) // bytes.Fields would have room on the heap
	resident, _, more := bytes.Cut(rest, []byte(" "))
	if !ok || !more {
		return 0, fmt.Errorf("read the memory of process %d: no second field in statm", pid)
	}
	pages, err := strconv.ParseInt(string(resident), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	return pages * int64(os.Getpagesize()), nil
}

// ofMemory is the path of a file of a process that tells of its memory. One whose first
// thread has ended tells of it by another: the first has given its memory back.
func ofMemory(pid int, name string) string {
	dir := "/proc/" + strconv.Itoa(pid)
	if s, err := readStat(pid); err == nil && s.state == 'Z' && !s.ended() {
		threads, _ := os.ReadDir(dir + "/task") // those that could be read count
		for _, t := range threads {
			if t.Name() != strconv.Itoa(pid) {
				return dir + "/task/" + t.Name() + "/" + name
			}
		}
	}
	return dir + "/" + name
}

// readShort reads a file that fits into room. It costs a quarter of what
// os.ReadFile does, which registers the file with the poller: this is read after
// every call.
func readShort(path string, room []byte) ([]byte, error) {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer func() { _ = syscall.Close(fd) }()
	n, err := syscall.Read(fd, room)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return room[:n], nil
}

// Descendants returns the processes that a process started, those that they
// started, and so on, without itself and without zombies. A process whose parent
// has ended does not count as a descendant any more: ask before the parent ends. It
// returns [ErrNoProcess] when the process has ended.
func Descendants(id Identity) ([]Identity, error) {
	children, err := childrenByParent()
	if err != nil {
		return nil, err
	}
	if Ended(id) {
		// Asked only now: had it ended before, its number might stand for another
		// process in the table.
		return nil, fmt.Errorf("process %d: %w", id.PID, ErrNoProcess)
	}
	var found []Identity
	queue := []int{id.PID}
	seen := map[int]bool{id.PID: true}
	for len(queue) > 0 {
		parent := queue[0]
		queue = queue[1:]
		for _, c := range children[parent] {
			if seen[c.PID] {
				continue // the table is not a snapshot: a pid can move while it is read
			}
			seen[c.PID] = true
			queue = append(queue, c.PID)
			found = append(found, c)
		}
	}
	return found, nil
}

// Children returns the processes whose parent a process is, without zombies. The error is
// that of Descendants.
func Children(id Identity) ([]Identity, error) {
	children, err := childrenByParent()
	if err != nil {
		return nil, err
	}
	if Ended(id) {
		return nil, fmt.Errorf("process %d: %w", id.PID, ErrNoProcess) // asked last, as in Descendants
	}
	return children[id.PID], nil
}

// Holding returns the processes whose command line contains text. A process of
// another user, or one that has ended by now, is left out.
func Holding(text string) ([]Identity, error) {
	pids, err := processes()
	if err != nil {
		return nil, err
	}
	var found []Identity
	for _, pid := range pids {
		id, err := Identify(pid)
		if Exhausted(err) {
			return nil, err
		}
		if err != nil {
			continue
		}
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		if Exhausted(err) {
			return nil, fmt.Errorf("read the command line of process %d: %w", pid, err)
		}
		if err == nil && bytes.Contains(b, []byte(text)) && Alive(id) {
			found = append(found, id)
		}
	}
	return found, nil
}

// childrenByParent reads parent and start time of a process at once, so that
// they belong to the same one.
func childrenByParent() (map[int][]Identity, error) {
	pids, err := processes()
	if err != nil {
		return nil, err
	}
	children := make(map[int][]Identity)
	for _, pid := range pids {
		s, err := readStat(pid)
		if Exhausted(err) {
			return nil, err
		}
		if err == nil && !s.ended() {
			children[s.ppid] = append(children[s.ppid], Identity{PID: pid, Start: s.startTime()})
		}
	}
	return children, nil
}

func processes() ([]int, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	defer func() { _ = d.Close() }()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var pids []int
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// tick is the unit of processor time in stat, whatever the kernel counts by.
const tick = 10 * time.Millisecond

// CPUTime returns the processor time that a process has used.
func CPUTime(pid int) (time.Duration, error) {
	s, err := readStat(pid)
	if err != nil {
		return 0, err
	}
	return time.Duration(s.cpu) * tick, nil
}

// Private returns the memory in bytes that a process shares with no other.
func Private(pid int) (int64, error) {
	b, err := os.ReadFile(ofMemory(pid, "smaps_rollup"))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return 0, fmt.Errorf("process %d: %w", pid, ErrNoProcess)
	}
	if err != nil {
		return 0, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	var kib int64
	for line := range bytes.Lines(b) {
		if f := bytes.Fields(line); len(f) == 3 && bytes.HasPrefix(f[0], []byte("Private_")) {
			n, err := strconv.ParseInt(string(f[1]), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("read the memory of process %d: %w", pid, err)
			}
			kib += n
		}
	}
	return kib << 10, nil
}

// Arguments returns the command line of a process of this user. Of another user's
// it says nothing: [ErrNoProcess].
func Arguments(pid int) ([]string, error) {
	dir := "/proc/" + strconv.Itoa(pid)
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, ErrNoProcess)
	}
	if s, ok := info.Sys().(*syscall.Stat_t); !ok || int(s.Uid) != os.Getuid() {
		return nil, fmt.Errorf("process %d belongs to another user: %w", pid, ErrNoProcess)
	}
	b, err := os.ReadFile(dir + "/cmdline")
	if Exhausted(err) {
		return nil, fmt.Errorf("read the command line of process %d: %w", pid, err)
	}
	if err != nil || len(b) == 0 {
		return nil, fmt.Errorf("process %d: %w", pid, ErrNoProcess)
	}
	var args []string
	for a := range bytes.SplitSeq(bytes.TrimSuffix(b, []byte{0}), []byte{0}) {
		args = append(args, string(a))
	}
	return args, nil
}
