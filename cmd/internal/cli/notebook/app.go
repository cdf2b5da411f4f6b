package notebook

import (
	"errors"
	"fmt"

	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/notebook"
)

// app is what the commands share.
type app struct{ *console.Console }

// failure sorts what went wrong: an argument is the command line's, the rest is the
// notebook's.
func failure(err error) error {
	switch {
	case console.Decided(err):
		return err
	case errors.Is(err, notebook.ErrArgument), errors.Is(err, notebook.ErrNoCell), errors.Is(err, notebook.ErrSelector):
		return console.UsageError{Err: err}
	case errors.Is(err, notebook.ErrChanged):
		return fmt.Errorf("%w; nothing was written: look at the file and try again", err)
	default:
		return err
	}
}
