//go:build unix

package temp

import (
	"io/fs"
	"os"
	"syscall"
)

// isOurs reports whether this user owns a folder: in a shared one anybody can make one
// with such a name.
func isOurs(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Getuid()
}
