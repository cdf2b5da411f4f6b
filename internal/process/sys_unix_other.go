//go:build unix && !linux

package process

import (
	"os"
	"syscall"
)

// DiesWithHost says whether this system ends children when the host is killed.
const DiesWithHost = false

// hasUsers says whether this system keeps to [Options.User].
const hasUsers = false

// LimitsMemory says whether this system keeps to [Options.AddressSpace].
const LimitsMemory = false

func sysProcAttr(o Options) *syscall.SysProcAttr {
	if o.Terminal != nil {
		return &syscall.SysProcAttr{Setsid: true, Setctty: true}
	}
	return &syscall.SysProcAttr{Setsid: o.OutliveHost, Setpgid: !o.ShareGroup && !o.OutliveHost}
}

// awaitExit reports false: the syscall package has no waitid here. The child is
// reaped first and the rest of its group killed just after.
func awaitExit(int) bool { return false }

func raiseNoFile(int, uint64) {}

func limitMemory(int, uint64) error { return nil }

func limitFiles(int, uint64) error { return nil }

func enterGroups(int, []*os.File) error { return nil }

func onMainThread() bool { return false }
