//go:build !windows

package pyenv

import "path/filepath"

const (
	exeSuffix = ""
	binName   = "bin"
	homeVar   = "HOME"
)

// condaPython returns the interpreter of a conda environment.
func condaPython(prefix string) string { return filepath.Join(prefix, "bin", "python") }
