package term

import (
	"github.com/charmbracelet/x/term"
	"golang.org/x/sys/windows"
)

// hide makes s one in which a line is typed and not shown.
func hide(s *term.State) {
	s.Mode &^= windows.ENABLE_ECHO_INPUT
	s.Mode |= windows.ENABLE_LINE_INPUT | windows.ENABLE_PROCESSED_INPUT
}
