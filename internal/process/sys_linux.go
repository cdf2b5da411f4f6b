package process

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// DiesWithHost says whether this system ends children when the host is killed.
const DiesWithHost = true

// hasUsers says whether this system keeps to [Options.User].
const hasUsers = true

// LimitsMemory says whether this system keeps to [Options.AddressSpace].
const LimitsMemory = true

func sysProcAttr(o Options) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{}
	switch {
	case o.OutliveHost:
		a.Setsid = true // a session has its own group
	case o.Terminal != nil:
		a.Setsid, a.Setctty, a.Ctty = true, true, 0
	case !o.ShareGroup:
		a.Setpgid = true
	}
	if !o.OutliveHost {
		a.Pdeathsig = syscall.SIGKILL
	}
	if o.User != nil {
		a.Credential = &syscall.Credential{Uid: uint32(o.User.UID), Gid: uint32(o.User.GID)} //nolint:gosec // numbers of users
		for _, g := range o.User.Groups {
			a.Credential.Groups = append(a.Credential.Groups, uint32(g)) //nolint:gosec // as above
		}
	}
	if len(o.Groups) == 1 && unified(o.Groups[0]) {
		a.UseCgroupFD, a.CgroupFD = true, int(o.Groups[0].Fd())
	}
	return a
}

// unified reports whether the folder of a control group is of version 2, in which a process
// can begin.
func unified(dir *os.File) bool {
	var at unix.Statfs_t
	return unix.Fstatfs(int(dir.Fd()), &at) == nil && at.Type == unix.CGROUP2_SUPER_MAGIC
}

// enterGroups moves a child to the control groups that it could not begin in.
func enterGroups(pid int, dirs []*os.File) error {
	for _, dir := range dirs {
		if unified(dir) {
			continue
		}
		entry, err := joinGroup(dir)
		if err != nil {
			return fmt.Errorf("enter its control group: %w", err)
		}
		_, err = entry.WriteString(strconv.Itoa(pid))
		if err := errors.Join(err, entry.Close()); err != nil {
			return fmt.Errorf("enter its control group: %w", err)
		}
	}
	return nil
}

// awaitExit waits for the end of a child without reaping it, and reports
// whether it could.
func awaitExit(pid int) bool {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}

func raiseNoFile(pid int, want uint64) {
	var l unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &l); err != nil {
		return
	}
	if soft := min(want, l.Max); soft > l.Cur {
		l.Cur = soft
		_ = unix.Prlimit(pid, unix.RLIMIT_NOFILE, &l, nil) // see Options.NoFile
	}
}

func limitMemory(pid int, bytes uint64) error { return lower(pid, unix.RLIMIT_AS, bytes) }

func limitFiles(pid int, n uint64) error { return lower(pid, unix.RLIMIT_NOFILE, n) }

// lower sets a limit for good, to no more than it is: the host itself may have one.
func lower(pid, resource int, to uint64) error {
	var l unix.Rlimit
	if err := unix.Prlimit(pid, resource, nil, &l); err != nil {
		return err
	}
	to = min(to, l.Max)
	return unix.Prlimit(pid, resource, &unix.Rlimit{Cur: to, Max: to}, nil)
}

// onMainThread reports whether the caller runs on the thread that the process
// began with.
func onMainThread() bool { return unix.Gettid() == unix.Getpid() }

// rlimitFileSize is the limit of the size of files.
const rlimitFileSize = unix.RLIMIT_FSIZE

// LimitFileSize bounds how long a file a process may make, and what it starts from now on, in bytes.
// The error says that this process may not, as with one of another user.
func LimitFileSize(pid int, bytes uint64) error {
	if err := lower(pid, rlimitFileSize, bytes); err != nil {
		return fmt.Errorf("limit the files of process %d: %w", pid, err)
	}
	return nil
}
