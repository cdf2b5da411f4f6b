package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// watching is the call by which a process hears what happens to a file or in a folder.
// Landlock has no rule for it: names and activity of all that the user may read could be
// learned by it.
const watching = "inotify_add_watch"

// watch has the queue of a process hear of a file or a folder that is open to it, and returns
// the number of the watch. What belongs to the system is watched by no one.
func (b *broker) watch(n notice) (int, error) {
	of, mask := process{int(n.pid)}, uint32(n.args[2]) //nolint:gosec // as the kernel reads it
	text, err := of.text(n.args[1], maxPath)
	if err != nil {
		return 0, err
	}
	if text == "" {
		return 0, unix.ENOENT
	}
	fd, err := of.open(object{dir: unix.AT_FDCWD, path: text, noFollow: mask&unix.IN_DONT_FOLLOW != 0})
	if err != nil {
		return 0, err
	}
	defer func() { _ = unix.Close(fd) }()
	if err := b.mayWatch(of, fd); err != nil {
		return 0, err
	}
	queue, err := of.take(descriptor(n.args[0]))
	if err != nil {
		return 0, err
	}
	defer func() { _ = unix.Close(queue) }()
	if !b.valid(n) {
		return 0, unix.ESRCH
	}
	return unix.InotifyAddWatch(queue, link(fd), mask&^unix.IN_DONT_FOLLOW)
}

// mayWatch says whether a process may hear of a file: one that it may read, in a folder that
// is open to it by name.
func (b *broker) mayWatch(of process, fd int) error {
	path, err := os.Readlink(link(fd))
	if err != nil {
		return unix.EPERM
	}
	at := func(folder string) bool {
		return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
	}
	if !slices.ContainsFunc(slices.Concat(b.folders, b.within, b.readable), at) {
		return unix.EPERM
	}
	uid, groups, err := of.who()
	if err != nil {
		return unix.EPERM
	}
	if !permits(link(fd), uid, groups, unix.R_OK) {
		return unix.EACCES
	}
	// This process may pass where that one may not.
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if !permits(dir, uid, groups, unix.X_OK) {
			return unix.EACCES
		}
		if dir == "/" {
			return nil
		}
	}
}

// take returns a copy of a descriptor of the process. The caller closes it.
func (p process) take(fd int) (int, error) {
	status, err := os.ReadFile(p.file("status"))
	if err != nil {
		return -1, unix.ESRCH
	}
	group := p.pid // who asks may be one thread of a process
	for line := range strings.Lines(string(status[:min(len(status), maxNames)])) {
		if rest, ok := strings.CutPrefix(line, "Tgid:"); ok {
			if group, err = strconv.Atoi(strings.TrimSpace(rest)); err != nil {
				return -1, unix.ESRCH
			}
		}
	}
	at, err := unix.PidfdOpen(group, 0)
	if err != nil {
		return -1, err
	}
	defer func() { _ = unix.Close(at) }()
	return unix.PidfdGetfd(at, fd, 0)
}
