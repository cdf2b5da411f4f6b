//go:build !windows

package pyenv

const (
	exeSuffix = ""
	binName   = "bin"
	homeVar   = "HOME"
)
