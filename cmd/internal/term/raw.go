package term

import (
	"fmt"
	"os"
	"sync"

	"github.com/charmbracelet/x/term"
)

// Raw has the terminal f hand over each key as it is pressed, Ctrl-C too, and show nothing
// by itself: for a program elsewhere whose terminal it is to be. The terminal stays so
// until restore is called, also after the process has ended; restore may be called more
// than once, from any goroutine.
func Raw(f *os.File) (restore func(), err error) {
	before, err := term.MakeRaw(f.Fd())
	if err != nil {
		return nil, fmt.Errorf("take over the terminal: %w", err)
	}
	return sync.OnceFunc(func() {
		_ = term.Restore(f.Fd(), before) // a terminal that is gone needs none
	}), nil
}

// Size returns the columns and rows of the terminal f, 80 by 24 when it does not say.
func Size(f *os.File) (columns, rows int) {
	if columns, rows, err := term.GetSize(f.Fd()); err == nil && columns > 0 && rows > 0 {
		return columns, rows
	}
	return DefaultWidth, 24
}
