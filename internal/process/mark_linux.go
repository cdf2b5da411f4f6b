package process

import (
	"math/rand/v2"

	"golang.org/x/sys/unix"
)

// mostMark bounds a mark: with some room below the number that stands for no limit.
const mostMark = 1 << 62

// NewMark returns a mark that no one else on this machine has. It is below the one of this process, if
// it has one, since a process without rights cannot raise it.
func NewMark() Mark {
	most := uint64(mostMark)
	var l unix.Rlimit
	if err := unix.Getrlimit(rlimitLocks, &l); err == nil && l.Max > 1 && l.Max < most {
		most = l.Max
	}
	return Mark(1 + rand.Uint64N(most-1))
}

// Marked returns the processes that have a mark. It looks at all of the machine, which
// costs a few microseconds for each.
func Marked(m Mark) ([]Identity, error) {
	pids, err := processes()
	if err != nil {
		return nil, err
	}
	var found []Identity
	for _, pid := range pids {
		if of, err := markOf(pid); err != nil || of != m || m == 0 {
			continue
		}
		id, err := Identify(pid)
		if err != nil {
			continue // it has ended
		}
		if of, err := markOf(pid); err == nil && of == m { // and is the one that was named
			found = append(found, id)
		}
	}
	return found, nil
}
