package cli

import "github.com/coppice-run/coppice/cmd/internal/cli/console"

// app is what the commands of this package share.
type app struct {
	*console.Console
	// engines are those of a program that can be a node of a fleet; nil: it cannot.
	engines *Directories
}
