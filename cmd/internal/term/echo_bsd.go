//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package term

import "golang.org/x/sys/unix"

// The requests that read and set what a terminal does.
const (
	getTermios = unix.TIOCGETA
	setTermios = unix.TIOCSETA
)
