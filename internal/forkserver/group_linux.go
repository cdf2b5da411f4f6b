package forkserver

import (
	"bytes"
	"context"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/coppice-run/coppice/internal/process"
)

// groupWait bounds the wait for the members of a group after they were killed.
const groupWait = time.Second

// killGroupOf kills what is left of the group that process pid led, after pid
// has ended and was reaped. The members must be of the session that
// pid led too. As long as one of them lives, the kernel gives the number to no
// new process; if there is a process of that number, it is a stranger, and its
// group with it.
//
// Finding the members takes a look at every process of the machine. Whoever comes
// during a look shares the next one, so that it takes two looks to end a thousand
// sessions which die together.
func killGroupOf(pid int) {
	if !process.Ended(process.Identity{PID: pid}) || pid <= 1 {
		return
	}
	<-groupsOf.add(pid)
}

var groupsOf = &batches{do: killGroups}

// batches collects numbers while do is at work on others.
type batches struct {
	do func(pids map[int]bool)

	mu   sync.Mutex
	busy bool          // guarded by mu: a goroutine runs do
	next map[int]bool  // guarded by mu: for its next turn
	done chan struct{} // guarded by mu: closed at the end of that turn; nil while next is empty
}

// add returns what is closed when do has returned for pid.
func (b *batches) add(pid int) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done == nil {
		b.next, b.done = map[int]bool{}, make(chan struct{})
	}
	b.next[pid] = true
	done := b.done
	if !b.busy {
		b.busy = true
		go b.run() // ends when no one waits any more; what add returned is its join
	}
	return done
}

func (b *batches) run() {
	for {
		b.mu.Lock()
		pids, done := b.next, b.done
		b.next, b.done = nil, nil
		b.busy = done != nil
		b.mu.Unlock()
		if done == nil {
			return
		}
		b.do(pids)
		close(done)
	}
}

// killGroups kills the members of these groups.
func killGroups(groups map[int]bool) {
	ctx, cancel := context.WithTimeout(context.Background(), groupWait)
	defer cancel()
	process.KillAll(ctx, members(groups))
}

// members returns the processes whose group and session have the same number, which
// is one of these.
func members(groups map[int]bool) []process.Identity {
	d, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = d.Close() }()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil
	}
	var found []process.Identity
	for _, n := range names {
		pid, err := strconv.Atoi(n)
		if err != nil {
			continue
		}
		id, err := process.Identify(pid) // first: if the number moves on, the identity is that of no one
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + n + "/stat")
		if err != nil {
			continue
		}
		// "pid (name) state ppid pgrp session …"; the name may hold anything.
		f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(f) <= 3 || !bytes.Equal(f[2], f[3]) {
			continue
		}
		if group, err := strconv.Atoi(string(f[2])); err == nil && groups[group] {
			found = append(found, id)
		}
	}
	return found
}
