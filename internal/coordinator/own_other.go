//go:build !linux && !darwin

package coordinator

import "os"

// own returns [ErrUnsupported].
func own(string, string) (*os.File, error) { return nil, ErrUnsupported }
