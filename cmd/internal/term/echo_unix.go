//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package term

import (
	"os"

	"golang.org/x/sys/unix"
)

func hideInput(f *os.File) (restore func(), err error) {
	fd := int(f.Fd())
	before, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return nil, err
	}
	hidden := *before
	hidden.Lflag &^= unix.ECHO
	hidden.Lflag |= unix.ICANON | unix.ISIG
	hidden.Iflag |= unix.ICRNL
	if err := unix.IoctlSetTermios(fd, setTermios, &hidden); err != nil {
		return nil, err
	}
	return func() {
		_ = unix.IoctlSetTermios(fd, setTermios, before) // a terminal that is gone shows nothing
	}, nil
}
