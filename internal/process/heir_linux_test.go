package process_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/test/testpython"
)

// heir waits for the process, a child of a host, that has what is left of an owner both of
// whose processes were killed.
func heir(t *testing.T, host int) (pid int) {
	t.Helper()
	require.Eventually(t, func() bool {
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", host, host))
		if err != nil {
			return false
		}
		all := strings.Fields(string(children))
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", host))
		for _, file := range threads {
			b, _ := os.ReadFile(file)
			all = append(all, strings.Fields(string(b))...)
		}
		for _, child := range all {
			if line, _ := os.ReadFile("/proc/" + child + "/cmdline"); strings.Contains(string(line), "\x00coppice-owner\x00heir\x00") {
				pid, _ = strconv.Atoi(child)
				return true
			}
		}
		return false
	}, patience, time.Millisecond, "no heir of the owner")
	return pid
}

// TestBothProcessesOfAnOwnerAreKilled: what was below them ends with the owner all the
// same, also when those are killed that take their place.
func TestBothProcessesOfAnOwnerAreKilled(t *testing.T) {
	var own process.Owner
	own.Use(testpython.Path(t))
	mark := process.NewMark()
	o := shell(&own, "echo $PPID; "+daemons+"wait")
	p := start(t, o)
	worker, err := strconv.Atoi(line(t, o.Stdout, 1))
	require.NoError(t, err)
	var all []process.Identity
	for n := 2; n <= 5; n++ {
		pid, err := strconv.Atoi(line(t, o.Stdout, n))
		require.NoError(t, err)
		id, err := process.Identify(pid)
		require.NoError(t, err)
		all = append(all, id)
	}
	// One of them is a workspace's by now.
	require.NoError(t, process.SetMark(all[0].PID, mark))
	release := own.Claim(mark)
	require.NoError(t, syscall.Kill(worker, syscall.SIGKILL))
	ended(t, p)
	left := slices.DeleteFunc(all, process.Ended)
	require.Len(t, left, 3, "what has left the group of the child")
	guards, err := process.Identify(parentOf(left[0].PID))
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(guards.PID, syscall.SIGKILL))
	first := heir(t, os.Getpid())
	require.NoError(t, syscall.Kill(first, syscall.SIGKILL))
	require.NoError(t, own.Close(t.Context()))
	for _, id := range left {
		require.True(t, process.Ended(id), "%v is left", id)
	}
	release()
}
