//go:build !unix

package procs

import "syscall"

// signals are those that can be sent, by name: this system knows the end alone.
var signals = map[string]syscall.Signal{"KILL": syscall.SIGKILL}
