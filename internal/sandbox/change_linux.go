package sandbox

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// object is what a call names: a path below a descriptor or the working directory, or
// with path "" the descriptor itself.
type object struct {
	dir      int
	path     string
	noFollow bool
}

// Bounds of what is read of a process.
const (
	maxPath  = unix.PathMax
	maxName  = 255 + 1
	maxValue = 64 << 10
	maxNames = 1 << 16 // of a status
)

// do carries a call out.
func (b *broker) do(n notice) error {
	of := process{int(n.pid)}
	call, a := b.calls[n.nr], n.args
	if (call == "fchmodat2" || call == "fchownat") && a[1] == 0 {
		return unix.EFAULT // here path 0 says that there is none, as with fchmod
	}
	here := unix.AT_FDCWD
	switch call {
	case "chmod":
		return b.mode(n, of, here, a[0], 0, a[1])
	case "fchmod":
		return b.mode(n, of, descriptor(a[0]), 0, unix.AT_EMPTY_PATH, a[1])
	case "fchmodat":
		return b.mode(n, of, descriptor(a[0]), a[1], 0, a[2])
	case "fchmodat2":
		return b.mode(n, of, descriptor(a[0]), a[1], a[3], a[2])
	case "chown":
		return b.owner(n, of, here, a[0], 0, a[1], a[2])
	case "lchown":
		return b.owner(n, of, here, a[0], unix.AT_SYMLINK_NOFOLLOW, a[1], a[2])
	case "fchown":
		return b.owner(n, of, descriptor(a[0]), 0, unix.AT_EMPTY_PATH, a[1], a[2])
	case "fchownat":
		return b.owner(n, of, descriptor(a[0]), a[1], a[4], a[2], a[3])
	case "utime":
		return b.times(n, of, here, a[0], 0, a[1], seconds)
	case "utimes":
		return b.times(n, of, here, a[0], 0, a[1], micros)
	case "futimesat":
		return b.times(n, of, descriptor(a[0]), a[1], 0, a[2], micros)
	case "utimensat":
		return b.times(n, of, descriptor(a[0]), a[1], a[3], a[2], nanos)
	case "setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr":
		return b.attribute(n, of, call)
	}
	return unix.ENOSYS // newer ones, for which programs have the older
}

// descriptor reads an argument that is one.
func descriptor(arg uint64) int { return int(int32(arg)) } //nolint:gosec // as the kernel reads it

// open returns a descriptor of what a call names, when the process may change it, with
// what it is. The caller closes it.
func (b *broker) open(n notice, of process, dir int, path, flags uint64) (int, unix.Stat_t, error) {
	var st unix.Stat_t
	o := object{dir: dir, noFollow: flags&unix.AT_SYMLINK_NOFOLLOW != 0}
	if path != 0 {
		var err error
		if o.path, err = of.text(path, maxPath); err != nil {
			return -1, st, err
		}
	}
	switch {
	case flags&unix.AT_EMPTY_PATH != 0:
	case path == 0: // not what the path is below
		return -1, st, unix.EFAULT
	case o.path == "":
		return -1, st, unix.ENOENT
	}
	fd, err := of.open(o)
	if err != nil {
		return -1, st, err
	}
	if err = unix.Fstat(fd, &st); err == nil {
		err = b.may(of, fd, st)
	}
	if err == nil && !b.valid(n) {
		err = unix.ESRCH
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, st, err
	}
	return fd, st, nil
}

// may says whether a process may change a file: its own, in a folder that is open to
// it.
func (b *broker) may(of process, fd int, st unix.Stat_t) error {
	path, err := os.Readlink(link(fd))
	if err != nil {
		return unix.EPERM
	}
	in := func(folder string) bool { return strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/") }
	if !slices.Contains(b.folders, path) && !slices.ContainsFunc(b.folders, in) && !slices.ContainsFunc(b.within, in) {
		return unix.EPERM
	}
	uid, _, err := of.who()
	if err != nil || uid != st.Uid {
		return unix.EPERM
	}
	return nil
}

// link is the path of a descriptor of this process, which the kernel follows to what
// is open there, wherever that is.
func link(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

func (b *broker) mode(n notice, of process, dir int, path, flags, mode uint64) error {
	fd, st, err := b.open(n, of, dir, path, flags)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	folder := st.Mode&unix.S_IFMT == unix.S_IFDIR
	switch {
	case st.Mode&unix.S_IFMT == unix.S_IFLNK:
		return unix.EOPNOTSUPP
	case mode&unix.S_ISUID != 0, mode&unix.S_ISGID != 0 && !folder:
		return unix.EPERM // of no use inside, and a gift to whoever runs it outside
	case mode&unix.S_ISGID != 0 && !of.in(st.Gid):
		return unix.EPERM
	}
	return unix.Fchmodat(unix.AT_FDCWD, link(fd), uint32(mode)&0o7777, 0) //nolint:gosec // masked
}

func (b *broker) owner(n notice, of process, dir int, path, flags, uid, gid uint64) error {
	fd, st, err := b.open(n, of, dir, path, flags)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	user, group := int32(uid), int32(gid)                                                                        //nolint:gosec // as the kernel reads them
	if user != -1 && uint32(user) != st.Uid || group != -1 && uint32(group) != st.Gid && !of.in(uint32(group)) { //nolint:gosec // as above
		return unix.EPERM
	}
	return unix.Fchownat(fd, "", int(user), int(group), unix.AT_EMPTY_PATH)
}

// A unit is that of the fractions of a second in a call.
type unit int64

const (
	seconds unit = 0 // and no fractions
	micros  unit = 1000
	nanos   unit = 1
)

func (b *broker) times(n notice, of process, dir int, path, flags, times uint64, in unit) error {
	if path == 0 && dir != unix.AT_FDCWD {
		flags |= unix.AT_EMPTY_PATH // futimens(3)
	} else if path == 0 {
		return unix.EFAULT
	}
	ts := []unix.Timespec{{Nsec: unix.UTIME_NOW}, {Nsec: unix.UTIME_NOW}}
	if times != 0 {
		count := 4
		if in == seconds {
			count = 2
		}
		v, err := of.longs(times, count)
		if err != nil {
			return err
		}
		if in == seconds {
			v = []int64{v[0], 0, v[1], 0}
		}
		ts = []unix.Timespec{unix.NsecToTimespec(0), unix.NsecToTimespec(0)}
		for i := range ts {
			ts[i].Sec, ts[i].Nsec = v[2*i], v[2*i+1]
			if in == micros {
				ts[i].Nsec *= int64(micros)
			}
		}
	}
	fd, st, err := b.open(n, of, dir, path, flags)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return unix.UtimesNanoAt(fd, "", ts, unix.AT_EMPTY_PATH)
	}
	return unix.UtimesNanoAt(unix.AT_FDCWD, link(fd), ts, 0)
}

// attribute sets or removes an extended attribute: those of users, and access lists.
// Others are the system's.
func (b *broker) attribute(n notice, of process, call string) error {
	a := n.args
	dir, path, flags := unix.AT_FDCWD, a[0], uint64(0)
	switch call[0] {
	case 'f':
		dir, path, flags = descriptor(a[0]), 0, unix.AT_EMPTY_PATH
	case 'l':
		flags = unix.AT_SYMLINK_NOFOLLOW
	}
	name, err := of.text(a[1], maxName)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(name, "user.") && !strings.HasPrefix(name, "system.posix_acl_") {
		return unix.EPERM
	}
	var value []byte
	set := strings.HasSuffix(call, "setxattr")
	if set && a[3] > maxValue {
		return unix.E2BIG
	}
	if set && a[3] > 0 {
		if value, err = of.read(a[2], int(a[3])); err != nil { //nolint:gosec // bounded
			return err
		}
	}
	fd, st, err := b.open(n, of, dir, path, flags)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	switch {
	case st.Mode&unix.S_IFMT == unix.S_IFLNK:
		return unix.EPERM
	case set:
		return unix.Setxattr(link(fd), name, value, int(int32(a[4]))) //nolint:gosec // as the kernel reads it
	}
	return unix.Removexattr(link(fd), name)
}

// process is a thread that has asked.
type process struct{ pid int }

func (p process) file(name string) string {
	return filepath.Join("/proc", strconv.Itoa(p.pid), name)
}

// open opens what a call names, for a look. It follows no link that the kernel makes up
// (/proc/self/fd/3), which would be this process's own.
func (p process) open(o object) (int, error) {
	if o.path == "" {
		if o.dir == unix.AT_FDCWD {
			return unix.Open(p.file("cwd"), unix.O_PATH|unix.O_CLOEXEC, 0)
		}
		if o.dir < 0 {
			return -1, unix.EBADF
		}
		fd, err := unix.Open(p.file(fmt.Sprintf("fd/%d", o.dir)), unix.O_PATH|unix.O_CLOEXEC, 0)
		if err == unix.ENOENT {
			err = unix.EBADF
		}
		return fd, err
	}
	from := unix.AT_FDCWD
	if !filepath.IsAbs(o.path) {
		var err error
		if from, err = p.open(object{dir: o.dir}); err != nil {
			return -1, err
		}
		defer func() { _ = unix.Close(from) }()
	}
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS}
	if o.noFollow {
		how.Flags |= unix.O_NOFOLLOW
	}
	return unix.Openat2(from, o.path, &how)
}

// read reads memory.
func (p process) read(at uint64, n int) ([]byte, error) {
	buf := make([]byte, n)
	local := []unix.Iovec{{Base: &buf[0]}}
	local[0].SetLen(n)
	got, err := unix.ProcessVMReadv(p.pid, local, []unix.RemoteIovec{{Base: uintptr(at), Len: n}}, 0)
	if err != nil {
		return nil, err
	}
	return buf[:got], nil
}

// text reads a string that ends with a zero byte, page by page: what is behind it may
// not be there.
func (p process) text(at uint64, most int) (string, error) {
	const page = 4096
	var all []byte
	for len(all) < most {
		n := min(int(page-at%page), most-len(all)) //nolint:gosec // at most a page
		part, err := p.read(at, n)
		if err != nil {
			return "", err
		}
		if head, _, found := bytes.Cut(part, []byte{0}); found {
			return string(append(all, head...)), nil
		}
		if len(part) < n {
			return "", unix.EFAULT
		}
		all, at = append(all, part...), at+uint64(n) //nolint:gosec // positive
	}
	return "", unix.ENAMETOOLONG
}

// longs reads numbers of 64 bits.
func (p process) longs(at uint64, n int) ([]int64, error) {
	const size = 8
	buf, err := p.read(at, n*size)
	if err != nil {
		return nil, err
	}
	if len(buf) < n*size {
		return nil, unix.EFAULT
	}
	v := make([]int64, n)
	for i := range v {
		v[i] = int64(binary.NativeEndian.Uint64(buf[i*size:])) //nolint:gosec // as the kernel reads it
	}
	return v, nil
}

// who returns the user as whom the process reaches files, and its groups.
func (p process) who() (uid uint32, groups []uint32, err error) {
	status, err := os.ReadFile(p.file("status"))
	if err != nil {
		return 0, nil, err
	}
	numbers := func(fields []string) (v []uint32) {
		for _, f := range fields {
			if n, err := strconv.ParseUint(f, 10, 32); err == nil {
				v = append(v, uint32(n))
			}
		}
		return v
	}
	const last = 3 // real, effective, saved, and that for files
	found := false
	for line := range strings.Lines(string(status[:min(len(status), maxNames)])) {
		name, rest, _ := strings.Cut(line, ":")
		v := numbers(strings.Fields(rest))
		switch {
		case name == "Uid" && len(v) > last:
			uid, found = v[last], true
		case name == "Gid" && len(v) > last:
			groups = append(groups, v[last])
		case name == "Groups":
			groups = append(groups, v...)
		}
	}
	if !found {
		return 0, nil, unix.ESRCH
	}
	return uid, groups, nil
}

// in reports whether a process is in a group.
func (p process) in(gid uint32) bool {
	_, groups, err := p.who()
	return err == nil && slices.Contains(groups, gid)
}
