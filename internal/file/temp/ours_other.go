//go:build !unix

package temp

import "io/fs"

// isOurs reports true: the folder for temporary files is the user's own here.
func isOurs(fs.FileInfo) bool { return true }
