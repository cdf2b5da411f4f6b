package process

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// mostMark bounds a mark: with some room below the number that stands for no limit.
const mostMark = 1 << 62

// NewMark returns a mark that no one else on this machine has. It is below the one of this process, if
// it has one, since a process without rights cannot raise it.
func NewMark() Mark { return Mark(1 + rand.Uint64N(ownMark()/2)) }

// newHighMark returns one that every process which has it may change for one of NewMark,
// also without rights.
func newHighMark() Mark {
	most := ownMark()
	return Mark(max(1, most/2+rand.Uint64N(most-most/2)))
}

// ownMark is the mark of this process, and where it has none, the highest that there is.
func ownMark() uint64 {
	var l unix.Rlimit
	if err := unix.Getrlimit(rlimitLocks, &l); err == nil && l.Max > 1 {
		return min(l.Max, mostMark)
	}
	return mostMark
}

// marks returns the marks that living processes have, and how many have each.
func marks() (map[Mark]int, error) {
	pids, err := processes()
	if err != nil {
		return nil, err
	}
	found := map[Mark]int{}
	for _, pid := range pids {
		if m, err := markOf(pid); err == nil { // else it has ended, or is none of ours
			found[m]++
		}
	}
	return found, nil
}

// mostReadings bounds how often the table of processes is read for one answer.
const mostReadings = 8

// Marked returns the processes that have a mark. It looks at all of the machine, which
// costs a few microseconds for each.
func Marked(m Mark) ([]Identity, error) {
	var found []Identity
	seen := map[int]bool{}
	// One that starts another and ends, while the table is read, is in neither place:
	// so it is read until nothing is new in it.
	for range mostReadings {
		pids, err := processes()
		if err != nil {
			return nil, err
		}
		fresh := slices.DeleteFunc(pids, func(pid int) bool { return seen[pid] })
		if len(fresh) == 0 {
			break
		}
		for _, pid := range fresh {
			seen[pid] = true
			of, err := markOf(pid)
			if Exhausted(err) {
				return nil, fmt.Errorf("read the mark of process %d: %w", pid, err)
			}
			if err != nil || of != m || m == 0 {
				continue
			}
			id, err := Identify(pid)
			if Exhausted(err) {
				return nil, err
			}
			if err != nil {
				continue // it has ended
			}
			if of, err := markOf(pid); err == nil && of == m { // and is the one that was named
				found = append(found, id)
			}
		}
	}
	return found, nil
}

// rlimitLocks is the limit that marks are.
const rlimitLocks = 10

// SetMark marks a process: what it starts from now on has the mark, too. The error says that
// this process may not, as with one of another user.
func SetMark(pid int, m Mark) error {
	if now, err := markOf(pid); err == nil && now == m {
		return nil
	}
	if err := unix.Prlimit(pid, rlimitLocks, &unix.Rlimit{Cur: uint64(m), Max: uint64(m)}, nil); err != nil {
		return fmt.Errorf("mark process %d: %w", pid, err)
	}
	return nil
}

// SetPart says which part of what has its mark a process belongs to; what it starts from
// now on belongs there, too. The process has to have its mark. The error says that this process may not, as
// with one of another user.
func SetPart(pid int, p Part) error {
	m, _, err := marksOf(pid)
	if err == nil {
		err = unix.Prlimit(pid, rlimitLocks, &unix.Rlimit{Cur: uint64(p), Max: uint64(m)}, nil)
	}
	if err != nil {
		return fmt.Errorf("say to which part process %d belongs: %w", pid, err)
	}
	return nil
}

// PartOf reads to which part of what has its mark a process belongs, 0 for none.
func PartOf(pid int) (Part, error) {
	_, p, err := marksOf(pid)
	return p, err
}

// BelongingOf reads the mark of a process, and to which part of what has that it belongs.
func BelongingOf(pid int) (Belonging, error) {
	m, p, err := marksOf(pid)
	if err != nil {
		return Belonging{}, fmt.Errorf("read the mark of process %d: %w", pid, err)
	}
	return Belonging{m, p}, nil
}

// Belongings returns the processes of the machine that belong to a part of what has a mark, by
// that. It costs a microsecond or two for each process of the machine, and tells of some that
// have ended.
func Belongings() (map[Belonging][]int, error) {
	pids, err := processes()
	if err != nil {
		return nil, err
	}
	found := map[Belonging][]int{}
	for _, pid := range pids {
		m, p, err := marksOf(pid)
		if Exhausted(err) {
			return nil, fmt.Errorf("read the mark of process %d: %w", pid, err)
		}
		if err == nil && p != 0 { // else it has ended, or is none of ours
			found[Belonging{m, p}] = append(found[Belonging{m, p}], pid)
		}
	}
	return found, nil
}

// markOf reads the mark of a process.
func markOf(pid int) (Mark, error) {
	m, _, err := marksOf(pid)
	return m, err
}

// marksOf reads the mark of a process, and its part of what has that.
func marksOf(pid int) (Mark, Part, error) {
	var l unix.Rlimit
	err := unix.Prlimit(pid, rlimitLocks, nil, &l)
	if err == nil {
		return Mark(l.Max), partIn(l.Cur, l.Max), nil
	}
	if !errors.Is(err, unix.EPERM) {
		return 0, 0, err
	}
	// The limits of other users' processes stand where everyone may read them.
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/limits")
	if err != nil {
		return 0, 0, err
	}
	_, rest, ok := bytes.Cut(b, []byte("\nMax file locks"))
	f := bytes.Fields(rest)
	if !ok || len(f) < 2 {
		return 0, 0, errors.New("no limit of file locks among those of the process")
	}
	most, err := strconv.ParseUint(string(f[1]), 10, 64)
	if err != nil {
		return 0, 0, err // it has none
	}
	now, err := strconv.ParseUint(string(f[0]), 10, 64)
	return Mark(most), partIn(now, most), err
}

// partIn reads the part from the two limits, which are the same where there is none.
func partIn(now, most uint64) Part {
	if now == most {
		return 0
	}
	return Part(now)
}
