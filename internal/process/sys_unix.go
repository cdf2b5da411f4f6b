//go:build unix

package process

import (
	"os"
	"syscall"
)

func terminateGroup(pgid int) bool { return syscall.Kill(-pgid, syscall.SIGTERM) == nil }

func terminateOne(p *os.Process) bool { return p.Signal(syscall.SIGTERM) == nil }

// killGroup kills every member of a group. ESRCH says that it has none.
func killGroup(pgid int) { _ = syscall.Kill(-pgid, syscall.SIGKILL) }

func exitSignal(s *os.ProcessState) (int, string) {
	w, ok := s.Sys().(syscall.WaitStatus)
	if !ok || !w.Signaled() {
		return 0, ""
	}
	return int(w.Signal()), w.Signal().String()
}

func signalGroup(pgid int, s syscall.Signal) error { return syscall.Kill(-pgid, s) }
