package term

import "golang.org/x/sys/unix"

// The requests that read and set what a terminal does.
const (
	getTermios = unix.TCGETS
	setTermios = unix.TCSETS
)
