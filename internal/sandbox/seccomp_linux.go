package sandbox

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// hasFilters asks the kernel whether it has filters of system calls that can ask a
// process (Linux 5.0).
func hasFilters() bool {
	action := uint32(unix.SECCOMP_RET_USER_NOTIF)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	return errno == 0
}

// kernelForm returns a program as the kernel takes it.
func kernelForm(raw []bpf.RawInstruction) []unix.SockFilter {
	filter := make([]unix.SockFilter, len(raw))
	for i, in := range raw {
		filter[i] = unix.SockFilter{Code: in.Op, Jt: in.Jt, Jf: in.Jf, K: in.K}
	}
	return filter
}

// install puts a filter on the calling thread and returns the descriptor through
// which the kernel asks about calls.
func install(raw []bpf.RawInstruction) (*os.File, error) {
	filter := kernelForm(raw)
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]} //nolint:gosec // at most 4096
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return nil, fmt.Errorf("install the filter: %w", errno)
	}
	if err := unix.SetNonblock(int(fd), true); err != nil { //nolint:gosec // a descriptor
		_ = unix.Close(int(fd)) //nolint:gosec // a descriptor
		return nil, fmt.Errorf("install the filter: %w", err)
	}
	return os.NewFile(fd, "seccomp"), nil
}
