//go:build unix

package file

import (
	"io/fs"
	"os"
	"syscall"
)

// syncDir makes a rename survive a crash of the machine. Some file systems
// cannot flush a directory; the rename is done all the same, so there is
// nothing to report.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}

// keepOwner gives a new file the owner and group of the one it replaces, as
// far as the system lets us: root may, others may only choose among their
// groups.
func keepOwner(f *os.File, was fs.FileInfo) {
	now, err := f.Stat()
	if err != nil {
		return
	}
	a, ok1 := was.Sys().(*syscall.Stat_t)
	b, ok2 := now.Sys().(*syscall.Stat_t)
	if ok1 && ok2 && (a.Uid != b.Uid || a.Gid != b.Gid) {
		_ = f.Chown(int(a.Uid), int(a.Gid))
	}
}
