package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Tallies says whether this system has [Tally].
const Tallies = true

// Tally returns the processes that have a mark, those with one of the numbers, and all
// that descend from any of them, without zombies. It looks at all processes of the machine, which takes
// about 20 µs for each.
func Tally(m Mark, roots []int) ([]Member, error) {
	pids, err := processes()
	if err != nil {
		return nil, err
	}
	all := make(map[int]Member, len(pids))
	in := map[int]bool{}
	for _, pid := range roots {
		in[pid] = true
	}
	for _, pid := range pids {
		p, of, err := member(pid)
		if err != nil {
			return nil, err
		}
		if p.PID == 0 {
			continue
		}
		if of == m && m != 0 {
			in[pid] = true
		} else {
			p.Part = 0
		}
		all[pid] = p
	}
	var found []Member
	for pid, p := range all {
		at := p
		for steps := 0; !in[at.PID] && steps < len(all); steps++ {
			parent, ok := all[at.Parent]
			if !ok {
				break
			}
			at = parent
		}
		if in[at.PID] {
			in[pid] = true
			p.Memory = memoryOf(pid)
			found = append(found, p)
		}
	}
	return found, nil
}

// TallyOf returns those of the processes with these numbers that have not ended, without what they
// have in memory. Of the others of the machine it takes no notice.
func TallyOf(pids []int) ([]Member, error) {
	found := make([]Member, 0, len(pids))
	for _, pid := range pids {
		m, _, err := member(pid)
		if err != nil {
			return nil, err
		}
		if m.PID != 0 {
			m.Memory = -1
			found = append(found, m)
		}
	}
	return found, nil
}

// member looks at a process, without what it has in memory, and returns what it is marked with.
// One that has ended, or cannot be read, is none. The error says that this process has no more room.
func member(pid int) (m Member, of Mark, err error) {
	s, err := readStat(pid)
	switch {
	case Exhausted(err):
		return m, 0, err
	case err != nil || s.ended():
		return m, 0, nil
	}
	m = Member{Identity: Identity{PID: pid, Start: s.startTime()}, Parent: s.ppid}
	of, part, err := marksOf(pid)
	switch {
	case Exhausted(err):
		return Member{}, 0, fmt.Errorf("read the mark of process %d: %w", pid, err)
	case err != nil:
		return m, 0, nil
	}
	m.Part = part
	return m, of, nil
}

// memoryOf reads what a process has in memory that is no file's; -1: it cannot be read.
func memoryOf(pid int) int64 {
	const enough = 4096 // some sixty lines; the list of processors, which is as long as there are many, comes after
	var room [enough]byte
	b, err := readShort(ofMemory(pid, "status"), room[:])
	if err != nil {
		return -1
	}
	return kib(b, "RssAnon:") + kib(b, "RssShmem:")
}

// Proportional returns the memory of a process in bytes, of which it has its part alone
// of what it shares with others (PSS). It costs about a millisecond.
func Proportional(pid int) (int64, error) {
	b, err := os.ReadFile(ofMemory(pid, "smaps_rollup"))
	if err != nil {
		return 0, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	return kib(b, "Pss_Anon:") + kib(b, "Pss_Shmem:"), nil
}

// kib reads a line of the form "Name:   12 kB" that is not the first, 0 where there is none.
func kib(b []byte, name string) int64 {
	at := bytes.Index(b, []byte("\n"+name))
	if at < 0 {
		return 0
	}
	rest := b[at+1+len(name):]
	if end := bytes.IndexByte(rest, '\n'); end >= 0 {
		rest = rest[:end]
	}
	n, _ := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte("kB")))), 10, 64)
	return n << 10
}

// LastStarted returns the number of the process or thread that began last on this machine, as this
// process sees it: they are given one after the other, and from the lowest again after the highest.
// 0: it is not told.
func LastStarted() int {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) == 0 {
		return 0
	}
	pid, err := strconv.Atoi(fields[len(fields)-1])
	if err != nil {
		return 0
	}
	return pid
}
