//go:build unix

package file

import "syscall"

// NonBlock is what the flags of an opening need so that it does not wait for the
// other end of a FIFO, and so that no terminal becomes that of this process. It
// changes nothing about a regular file. It is for what opens a file by itself, such
// as a lock; all others call [OpenFile], which adds it.
const NonBlock = syscall.O_NONBLOCK | syscall.O_NOCTTY
