package process

import (
	"os"
	"syscall"
)

// DiesWithHost says whether this system ends children when the host is killed.
const DiesWithHost = false

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

// terminateGroup reports false: Windows cannot ask a process without a console
// window to end.
func terminateGroup(int) bool { return false }

func terminateOne(*os.Process) bool { return false }

// killGroup does nothing: a Windows process group takes no kill. The child
// itself is killed by its handle; what it started is not reached.
func killGroup(int) {}

func exitSignal(*os.ProcessState) (int, string) { return 0, "" }

func onMainThread() bool { return false }
