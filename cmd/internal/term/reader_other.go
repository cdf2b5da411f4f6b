//go:build !unix

package term

import "os"

// ReaderGone cannot tell here: it reports false, and the next write fails.
func ReaderGone(*os.File) bool { return false }
