//go:build unix

package starve

import (
	"os/exec"
	"syscall"
)

// alone makes the program the first of a session.
func alone(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
