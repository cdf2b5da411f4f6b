package term

import (
	"errors"
	"os"
	"sync"

	"github.com/charmbracelet/x/term"
)

// ErrNoEcho is matched by an error of HideInput when what is typed at this
// terminal cannot be hidden.
var ErrNoEcho = errors.New("what is typed here cannot be hidden")

// HideInput has the terminal f no longer show what is typed, for a password.
// Lines are edited as before, and Ctrl-C is a signal as before. The terminal
// stays so until show is called, also after the process has ended; show may be
// called more than once, from any goroutine.
func HideInput(f *os.File) (show func(), err error) {
	before, err := term.GetState(f.Fd())
	if err != nil {
		return nil, errors.Join(ErrNoEcho, err)
	}
	hidden := *before
	hide(&hidden)
	if err := term.SetState(f.Fd(), &hidden); err != nil {
		return nil, errors.Join(ErrNoEcho, err)
	}
	return sync.OnceFunc(func() {
		_ = term.SetState(f.Fd(), before) // a terminal that is gone shows nothing
	}), nil
}
