// Package term asks the terminal behind a file what it is: whether it is one,
// and how large it is. It hides what is typed there while a password is asked
// for, and hands over its keys for a program elsewhere, which is all that it ever changes. What systems call these things is left
// to charmbracelet/x/term. It starts no goroutine; any goroutine may call it.
package term

import (
	"os"

	"github.com/charmbracelet/x/term"
)

// DefaultWidth is the width that is assumed when nothing says better.
const DefaultWidth = 80

// IsTerminal reports whether w is a terminal. Of what is not a file it is
// false.
func IsTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(f.Fd())
}

// Width returns the number of columns of the terminal w, DefaultWidth when w is
// not one or does not say.
func Width(w any) int {
	if f, ok := w.(*os.File); ok {
		if columns, _, err := term.GetSize(f.Fd()); err == nil && columns > 0 {
			return columns
		}
	}
	return DefaultWidth
}
