package forkserver

import (
	"bytes"
	"context"
	"os"
	"strconv"
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
func killGroupOf(pid int) {
	if _, err := process.Identify(pid); err == nil || pid <= 1 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), groupWait)
	defer cancel()
	process.KillAll(ctx, members(pid))
}

// members returns the processes whose group and session have this number.
func members(group int) []process.Identity {
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
	number := []byte(strconv.Itoa(group))
	for _, n := range names {
		pid, err := strconv.Atoi(n)
		if err != nil {
			continue
		}
		id, err := process.Identify(pid)
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + n + "/stat")
		if err != nil {
			continue
		}
		// "pid (name) state ppid pgrp session …"; the name may hold anything.
		f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(f) > 3 && bytes.Equal(f[2], number) && bytes.Equal(f[3], number) {
			found = append(found, id)
		}
	}
	return found
}
