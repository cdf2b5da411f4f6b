package process

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

// DiesWithHost says whether this system ends children when the host is killed.
const DiesWithHost = false

// hasUsers says whether this system keeps to [Options.User].
const hasUsers = false

// LimitsMemory says whether this system keeps to [Options.AddressSpace].
const LimitsMemory = false

func sysProcAttr(o Options) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{HideWindow: true}
	if !o.ShareGroup || o.OutliveHost {
		a.CreationFlags = syscall.CREATE_NEW_PROCESS_GROUP
	}
	return a
}

// awaitExit reports false: the handle of the child keeps its pid.
func awaitExit(int) bool { return false }

func raiseNoFile(int, uint64) {}

func limitMemory(int, uint64) error { return nil }

func enterGroups(int, []*os.File) error { return nil }

func limitFiles(int, uint64) error { return nil }

// terminateGroup sends CTRL_BREAK to the group that the child leads. It reports
// false when that cannot be done, as in a host without a console: then the child
// is killed at once.
func terminateGroup(pid int) bool {
	if pid <= 0 { // 0 would be everybody at this console, the host too
		return false
	}
	return windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(pid)) == nil
}

func terminateOne(*os.Process) bool { return false }

// killGroup does nothing: a Windows process group takes no kill. The child
// itself is killed by its handle; what it started is not reached.
func killGroup(int) {}

// signalGroup cannot be done here.
func signalGroup(int, syscall.Signal) error { return errors.ErrUnsupported }

func exitSignal(*os.ProcessState) (int, string) { return 0, "" }

func onMainThread() bool { return false }
