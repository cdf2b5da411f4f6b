package starve

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// deprivers is how many burners have the processor of a process that is to have none:
// they may be of low priority themselves, as in tests that run with nice.
const deprivers = 3

// Deprive takes the processor from a process, and from what it starts from now on, until
// what it returns is called, or the test ends: it comes last on one processor, which
// burners want all the time. It gets a few milliseconds of each second; where the system
// shares processors between sessions, and it has one of its own, that comes last, too.
func Deprive(tb testing.TB, pid int) (giveBack func()) {
	tb.Helper()
	fail := func(err error) {
		if err != nil {
			tb.Helper()
			tb.Fatal(err)
		}
	}
	var all, one unix.CPUSet
	fail(unix.SchedGetaffinity(0, &all))
	for cpu := 0; one.Count() == 0; cpu++ {
		if all.IsSet(cpu) {
			one.Set(cpu)
		}
	}
	burners, err := burn(deprivers, false)
	fail(err)
	session := 0 // the process's own
	giveBack = sync.OnceFunc(func() {
		_ = schedule(pid, unix.SCHED_NORMAL, &all) // it may have ended
		if session > 0 {
			rank(session, usual)
		}
		if err := burners.Stop(); err != nil {
			tb.Error(err)
		}
	})
	tb.Cleanup(giveBack)
	for _, cmd := range burners.cmds {
		fail(schedule(cmd.Process.Pid, unix.SCHED_NORMAL, &one))
	}
	fail(schedule(pid, unix.SCHED_IDLE, &one))
	if ours, err := unix.Getsid(0); err == nil {
		if its, err := unix.Getsid(pid); err == nil && its != ours {
			session = its
			rank(session, lowest)
		}
	}
	return giveBack
}

// The ranks of a session among others, as nice has them.
const lowest, usual = 19, 0

// rank ranks a session, where the system does that. To raise it again takes rights; it
// need not be, once the burners are gone.
func rank(session, nice int) {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", session), []byte(strconv.Itoa(nice)), 0) //nolint:gosec // it is there, or not
}

// schedule sets how all threads of a process are scheduled, and where. Those that they
// start meanwhile inherit it.
func schedule(pid int, policy uint32, where *unix.CPUSet) error {
	done := map[int]bool{}
	for before := -1; before != len(done); {
		before = len(done)
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
		if err != nil || len(tasks) == 0 {
			return fmt.Errorf("list the threads of process %d: %w", pid, os.ErrProcessDone)
		}
		for _, task := range tasks {
			tid, err := strconv.Atoi(filepath.Base(task))
			if err != nil || done[tid] {
				continue
			}
			err = unix.SchedSetAttr(tid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: policy}, 0)
			if err == nil {
				err = unix.SchedSetaffinity(tid, where)
			}
			if err != nil && err != unix.ESRCH { //nolint:errorlint // it is the number itself
				return fmt.Errorf("schedule thread %d of process %d: %w", tid, pid, err)
			}
			done[tid] = true
		}
	}
	return nil
}
