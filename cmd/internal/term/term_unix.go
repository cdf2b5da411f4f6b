//go:build unix

package term

import (
	"os"

	"golang.org/x/sys/unix"
)

func size(f *os.File) (columns int, ok bool) {
	ws, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, false
	}
	return int(ws.Col), true
}
