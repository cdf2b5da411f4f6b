//go:build unix

package term

import (
	"github.com/charmbracelet/x/term"
	"golang.org/x/sys/unix"
)

// hide makes s one in which a line is typed and not shown.
func hide(s *term.State) {
	s.Lflag &^= unix.ECHO
	s.Lflag |= unix.ICANON | unix.ISIG
	s.Iflag |= unix.ICRNL
}
