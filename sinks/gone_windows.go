package sinks

import "syscall"

// errNoData is what a pipe says on Windows whose other end is closed
// (ERROR_NO_DATA).
const errNoData = syscall.Errno(232)
