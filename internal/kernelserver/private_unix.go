//go:build unix

package kernelserver

import (
	"io/fs"
	"os"
	"syscall"
)

const rootDir = "/"

// isOurs reports whether this user owns a file. In a shared temporary directory
// anybody can make one with our name.
func isOurs(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Getuid()
}
