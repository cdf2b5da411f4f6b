package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"unsafe"

	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"
)

// broker does, for confined processes, what changes a file's permissions, owner, times
// or attributes: in the folders that are theirs to write, and nowhere else. And it has them
// hear what happens in those, and in the folders that are theirs to read. The filter
// cannot tell such calls apart, since it does not see what a path points to, and to let
// the kernel go on with a call that was looked at would be of no use: the process
// may have put another path there meanwhile. So the call is never made. The broker reads
// its arguments once, opens what they name, looks at what that is, and changes it.
type broker struct {
	listener *os.File
	folders  []string // resolved; what is in them may be changed, and they themselves
	within   []string // what is in these may be changed, not they themselves
	readable []string // resolved; what is in them may be watched, and they themselves
	calls    map[int32]string
}

// notice is a question of the kernel, struct seccomp_notif.
type notice struct {
	id    uint64
	pid   uint32
	flags uint32
	nr    int32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

// answer is struct seccomp_notif_resp.
type answer struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

func newBroker(listener *os.File, r Rules) *broker {
	b := &broker{listener: listener, calls: map[int32]string{}}
	if !r.Private {
		b.within = []string{shared}
	}
	for _, dir := range r.Write {
		b.folders = append(b.folders, resolved(dir))
	}
	for _, dir := range r.Read {
		if filepath.IsAbs(dir) {
			b.readable = append(b.readable, resolved(filepath.Clean(dir)))
		}
	}
	if machine, err := arch.GetInfo(""); err == nil {
		for _, call := range append(slices.Clone(brokered), making) {
			if n, there := machine.SyscallNames[call]; there {
				b.calls[int32(n)] = call //nolint:gosec // a number of a call
			}
		}
	}
	return b
}

// serve answers until the last process under the filter has ended.
func (b *broker) serve() {
	defer func() { _ = b.listener.Close() }() // nobody asks any more
	raw, err := b.listener.SyscallConn()
	if err != nil {
		return // os.NewFile made it: it cannot be
	}
	for over := false; !over; {
		var n notice
		err := raw.Read(func(fd uintptr) bool {
			var ready bool
			ready, over = look(int(fd)) //nolint:gosec // a descriptor
			if !ready {
				return over
			}
			n = notice{}
			_, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n)))
			return errno == 0 // else who asked was killed
		})
		if err != nil {
			return
		}
		if !over {
			b.answer(n)
		}
	}
}

// look says whether the kernel has a question, and whether it will have none any more.
func look(fd int) (ready, over bool) {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}} //nolint:gosec // a descriptor
	if _, err := unix.Poll(p, 0); err != nil {
		return false, false // a signal: the descriptor is still ready
	}
	return p[0].Revents&unix.POLLIN != 0, p[0].Revents&unix.POLLHUP != 0
}

// answer does what a call asked for and tells the kernel how it went.
func (b *broker) answer(n notice) {
	a := answer{id: n.id}
	var err error
	number := 0
	switch b.calls[n.nr] {
	case watching:
		number, err = b.watch(n)
	case making:
		number, err = makeSocket(b.listener.Fd(), n.id, int(uint32(n.args[1]))) //nolint:gosec // as the kernel reads it
	default:
		err = b.do(n)
	}
	a.value = int64(max(number, 0))
	if err != nil {
		errno, ok := errors.AsType[unix.Errno](err)
		if !ok || errno == 0 {
			errno = unix.EPERM
		}
		a.value, a.errno = 0, -int32(errno) //nolint:gosec // below 4096
	}
	// Who asked may have been killed, and then hears nothing.
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, b.listener.Fd(), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&a)))
}

// valid reports whether the process still waits for the answer, so that its number is
// its own.
func (b *broker) valid(n notice) bool {
	id := n.id
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, b.listener.Fd(), unix.SECCOMP_IOCTL_NOTIF_ID_VALID, uintptr(unsafe.Pointer(&id)))
	return errno == 0
}
