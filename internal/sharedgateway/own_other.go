//go:build !linux && !darwin

package sharedgateway

import "os"

// own returns [ErrUnsupported].
func own(string, string) (*os.File, error) { return nil, ErrUnsupported }
