package sandbox

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// making is the call by which a process makes a socket. Whom a socket is connected to cannot be
// known by a filter, nor by who is asked about the call: the address is in the process's memory,
// and may be another by then. So the broker makes those that a process may have, bound
// to the loopback interface, which what has no rights cannot undo (Linux 5.7): nothing sent
// from it leaves this machine, whatever the address.
const making = "socket"

// addFD is struct seccomp_notif_addfd.
type addFD struct {
	id         uint64
	flags      uint32
	from       uint32
	to         uint32
	descriptor uint32 // flags of the new one
}

// makeSocket makes one of a kind for TCP over IPv4, as the filter has seen to, and gives it to who
// has asked a listener by a question of this number. It returns the descriptor's number there.
func makeSocket(listener uintptr, question uint64, kind int) (int, error) {
	const loopback = "lo"
	fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return 0, err
	}
	defer func() { _ = unix.Close(fd) }() // who asked has its own
	if err := unix.BindToDevice(fd, loopback); err != nil {
		return 0, err
	}
	add := addFD{id: question, from: uint32(fd)} //nolint:gosec // a descriptor
	if kind&unix.SOCK_CLOEXEC != 0 {
		add.descriptor = unix.O_CLOEXEC
	}
	number, _, errno := unix.Syscall(unix.SYS_IOCTL, listener, unix.SECCOMP_IOCTL_NOTIF_ADDFD, uintptr(unsafe.Pointer(&add)))
	if errno != 0 {
		return 0, errno
	}
	return int(number), nil //nolint:gosec // a descriptor
}
