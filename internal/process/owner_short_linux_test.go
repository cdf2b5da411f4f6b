package process_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/test/testpython"
)

// worker is the process of an owner that a child of it descends from.
func worker(t *testing.T, p *process.Process) int {
	t.Helper()
	return parentOf(p.PID())
}

// TestAnOwnerWithoutDescriptors refuses what it cannot start, keeps what it has, and goes
// on when there are some again.
func TestAnOwnerWithoutDescriptors(t *testing.T) {
	t.Parallel()
	own := owner(t)
	first := start(t, shell(own, "exec sleep 600"))
	pid := worker(t, first)
	var was unix.Rlimit
	require.NoError(t, unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &was))
	for _, files := range []uint64{4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14} { // it takes some for a start: each step of it is without one
		require.NoError(t, unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: files, Max: was.Max}, nil))
		p, err := process.Start(shell(own, "exit 0"))
		if err != nil {
			require.ErrorContains(t, err, "start /bin/sh", "with %d", files)
		} else {
			ended(t, p)
		}
		if files == 4 {
			require.ErrorIs(t, err, syscall.EMFILE)
		}
		require.True(t, process.Alive(first.Identity()), "with %d", files)
	}
	require.NoError(t, unix.Prlimit(pid, unix.RLIMIT_NOFILE, &was, nil))
	again := start(t, shell(own, "exec sleep 600"))
	require.Equal(t, pid, worker(t, again), "the same owner")
}

// TestAStartThatHangs blocks nobody else's, and ends nothing.
func TestAStartThatHangs(t *testing.T) {
	t.Parallel()
	own := owner(t)
	process.SetStartWait(own, 5*time.Second) // those that do not hang begin within it on a busy machine, too
	first := start(t, shell(own, "exec sleep 600"))
	// A control group that takes nobody: what is to enter it writes into a pipe that is full.
	dir := t.TempDir()
	path := filepath.Join(dir, "cgroup.procs")
	require.NoError(t, unix.Mkfifo(path, 0o600))
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	defer func() { _ = unix.Close(fd) }()
	for err == nil {
		_, err = unix.Write(fd, make([]byte, 1<<16))
	}
	for err = error(nil); err == nil; {
		_, err = unix.Write(fd, []byte{0})
	}
	group, err := os.Open(dir)
	require.NoError(t, err)
	defer func() { _ = group.Close() }()
	o := shell(own, "exit 0")
	o.Groups = []*os.File{group}
	hung := make(chan error, 1)
	go func() { // ends with the start
		_, err := process.Start(o)
		hung <- err
	}()
	for range 3 {
		p := start(t, shell(own, "exit 0"))
		ended(t, p)
		require.NoError(t, p.Err())
	}
	require.ErrorIs(t, <-hung, syscall.ETIMEDOUT)
	require.True(t, process.Alive(first.Identity()))
	require.Equal(t, worker(t, first), worker(t, start(t, shell(own, "exec sleep 600"))), "the same owner")
}

// TestAChildOfAnOwnerBeginsWithinItsLimits, and does not get them while it runs.
func TestAChildOfAnOwnerBeginsWithinItsLimits(t *testing.T) {
	t.Parallel()
	own := owner(t)
	for range 20 {
		o := shell(own, "ulimit -n; ulimit -Hn; ulimit -v; ulimit -f")
		o.MaxFiles, o.AddressSpace, o.FileSize = 77, 1<<30, 1<<20
		p := start(t, o)
		ended(t, p)
		require.NoError(t, p.Err())
		require.Equal(t, "77\n77\n1048576\n2048\n", o.Stdout.String())
	}
}

// TestAnOwnerThatCouldNotBeginIsTriedAgain: what kept it from that may be over.
func TestAnOwnerThatCouldNotBeginIsTriedAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	python, flag := filepath.Join(dir, "python"), filepath.Join(dir, "broken")
	require.NoError(t, os.WriteFile(flag, nil, 0o600))
	require.NoError(t, os.WriteFile(python, []byte("#!/bin/sh\n[ -e "+flag+" ] && exit 1\nexec "+testpython.Path(t)+" \"$@\"\n"), 0o700))
	var own process.Owner
	own.Use(python)
	defer func() { require.NoError(t, own.Close(t.Context())) }()
	require.Equal(t, os.Getpid(), worker(t, start(t, shell(&own, "exec sleep 600"))), "it starts all the same, without one")
	require.NoError(t, os.Remove(flag))
	require.NotEqual(t, os.Getpid(), worker(t, start(t, shell(&own, "exec sleep 600"))))
}
