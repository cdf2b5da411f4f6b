package process

import (
	"fmt"
	"math/rand/v2"
	"slices"

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
