//go:build !unix && !windows

package term

import "github.com/charmbracelet/x/term"

// hide changes nothing here: there are no states to be had.
func hide(*term.State) {}
