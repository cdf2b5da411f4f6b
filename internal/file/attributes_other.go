//go:build !linux && !darwin && !freebsd

package file

import "os"

// keepAttributes does nothing: extended attributes are not known here.
func keepAttributes(*os.File, string) {}
