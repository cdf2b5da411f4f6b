//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly && !windows

package term

import (
	"errors"
	"os"
)

func hideInput(*os.File) (restore func(), err error) { return nil, errors.ErrUnsupported }
