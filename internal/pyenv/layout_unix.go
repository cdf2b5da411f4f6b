//go:build !windows

package pyenv

import (
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	exeSuffix = ""
	binName   = "bin"
	homeVar   = "HOME"
)

// condaPython returns the interpreter of a conda environment.
func condaPython(prefix string) string { return filepath.Join(prefix, "bin", "python") }

// inode tells a file from another that was put in its place, and from itself before its
// last change: no program can set that time. "" when it cannot be looked at.
func inode(path string, follow bool) string {
	var st unix.Stat_t
	look := unix.Lstat
	if follow {
		look = unix.Stat
	}
	if look(path, &st) != nil {
		return ""
	}
	return fmt.Sprint(st.Ino, st.Ctim.Sec, st.Ctim.Nsec)
}
