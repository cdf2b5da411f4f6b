package opportunity

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/coppice-run/coppice/internal/cgroup"
	"github.com/coppice-run/coppice/internal/process"
)

// Sample is what is known of the other side at one moment. All durations count from
// the same moment, and never fall, but Pending.
type Sample struct {
	// Ran is the processor time that it has used, Waited how long it waited for a
	// processor and Disk for a disk.
	Ran, Waited, Disk time.Duration
	// Pending is what a thread that wants a processor now may have waited besides.
	Pending time.Duration
	// Throttled is as in [Measure].
	Throttled time.Duration
	// Stopped says that it is stopped by a signal or a debugger.
	Stopped bool
	Known   Known
}

// Subject is the other side, as one [Meter] sees it: it remembers the last look and
// is not shared by meters. Look is called by one goroutine at a time. Its error is
// [process.ErrNoProcess], [process.ErrUnsupported] or fs.ErrNotExist when nothing more
// will be known, as of a process that has ended; after any other it is looked at again.
type Subject interface {
	Look(now time.Time) (Sample, error)
}

// Unknown is another side of which nothing is known: one on another machine.
type Unknown struct{}

// Look tells that.
func (Unknown) Look(time.Time) (Sample, error) { return Sample{}, nil }

// Processes are those that an answer takes: a kernel, and the server that passes it
// on. They are named by identity, so that a stranger with the same number never
// counts; those without one are left out. Where nothing is left, or the system does
// not tell, the subject is [Unknown].
func Processes(ids ...process.Identity) Subject {
	var known []process.Identity
	for _, id := range ids {
		if id.PID > 0 && id.Start != "" {
			known = append(known, id)
		}
	}
	if len(known) == 0 || !process.CountsThreads {
		return Unknown{}
	}
	return &processes{list: func() ([]process.Identity, error) { return known, nil }}
}

// Tree is a process and all that it has started and that still has a parent there. A
// look costs milliseconds: it reads the table of all processes.
func Tree(root process.Identity) Subject {
	s, ok := Processes(root).(*processes)
	if !ok {
		return Unknown{}
	}
	s.list = func() ([]process.Identity, error) {
		below, err := process.Descendants(root)
		if err != nil {
			return nil, err
		}
		return append([]process.Identity{root}, below...), nil
	}
	return s
}

// Group is all processes of the control group (version 2) with this folder, without
// those of groups below.
func Group(dir string) Subject {
	if !process.CountsThreads {
		return Unknown{}
	}
	return &processes{dir: filepath.Clean(dir), list: func() ([]process.Identity, error) {
		pids, err := cgroup.Members(dir)
		if err != nil {
			return nil, fmt.Errorf("list the processes of a control group: %w", err)
		}
		var ids []process.Identity
		for _, pid := range pids {
			if id, err := process.Identify(pid); err == nil {
				ids = append(ids, id)
			}
		}
		return ids, nil
	}}
}

// processes is a subject of processes of this machine.
type processes struct {
	list   func() ([]process.Identity, error)
	dir    string // of the control group; "" is that of the first process
	ledger ledger
	looked bool
	// throttled is that of the group when it was read last.
	throttled time.Duration
}

// Look reads the threads of the processes that are there now.
func (p *processes) Look(now time.Time) (Sample, error) {
	ids, err := p.list()
	if err != nil {
		return Sample{}, err
	}
	var threads []process.Thread
	stopped := false
	for at, id := range ids {
		its, err := process.Threads(id)
		if errors.Is(err, process.ErrNoProcess) {
			continue
		}
		if err != nil {
			return Sample{}, err
		}
		first := its[0]
		if first.State == process.Over && len(its) > 1 { // it goes on without the thread that it began with
			first = its[1]
		}
		stopped = stopped || at == 0 && first.State == process.Halted
		threads = append(threads, its...)
	}
	if len(threads) == 0 {
		return Sample{}, process.ErrNoProcess
	}
	p.ledger.add(now, threads)
	s := Sample{
		Ran: p.ledger.ran, Waited: p.ledger.waited, Disk: p.ledger.disk, Pending: p.ledger.pending,
		Stopped: stopped, Known: Usage,
	}
	if p.ledger.counted {
		s.Known = Waits
	}
	if p.dir == "" && !p.looked { // not sooner: most subjects are never looked at
		p.dir, _ = cgroup.OfProcessors("", ids[0].PID) // without one nothing is known of throttling
	}
	if p.dir != "" && (!p.looked || s.Waited+s.Pending >= worthTelling) { // it costs as much as a thread
		p.throttled = cgroup.Throttled(p.dir)
	}
	p.looked, s.Throttled = true, p.throttled
	return s, nil
}
