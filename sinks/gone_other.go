//go:build !windows

package sinks

import "syscall"

// errNoData is what a pipe says whose other end is closed.
const errNoData = syscall.EPIPE
