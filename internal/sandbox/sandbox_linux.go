package sandbox

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// ABI returns the version of Landlock that this kernel has, 0 for none.
func ABI() int {
	v, err := landlockVersion()
	if err != nil {
		return 0
	}
	return v
}

// Strongest returns the highest rung that this system has.
func Strongest() Level {
	if _, err := bubblewrap(); err == nil {
		return Bubblewrap
	}
	if ABI() > 0 {
		return Landlock
	}
	return Privileges
}

// Describe says in words what a rung does on this system.
func Describe(l Level) string {
	switch l {
	case Off:
		return "the host's own rights"
	case Privileges:
		return "no_new_privs: nothing that is started gains rights"
	case Landlock:
		text := "Landlock ABI " + strconv.Itoa(ABI()) + ": files by rules"
		if ABI() >= 4 {
			text += ", no TCP"
		}
		if ABI() >= 6 {
			text += ", no signals to processes outside"
		}
		return text
	default:
		return "bubblewrap: file system, network and IPC of its own; " + Describe(Landlock)
	}
}

// Available returns nil when this system has the rung.
func Available(l Level) error {
	switch l {
	case Landlock:
		if ABI() == 0 {
			return fmt.Errorf("%w: this kernel has no Landlock (Linux 5.13 or newer, with lsm=landlock)", ErrUnavailable)
		}
	case Bubblewrap:
		_, err := bubblewrap()
		return err
	}
	return nil
}

// bubblewrap finds the program and sees whether it may make namespaces here.
func bubblewrap() (string, error) {
	path, err := exec.LookPath("bwrap")
	if err != nil {
		return "", fmt.Errorf("%w: bubblewrap is not installed (the program bwrap)", ErrUnavailable)
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if out, err := exec.Command(path, "--ro-bind", "/", "/", "--unshare-net", "--unshare-ipc", "true").CombinedOutput(); err != nil { //nolint:noctx // it ends within milliseconds
		return "", fmt.Errorf("%w: bubblewrap cannot make namespaces here: %w: %s", ErrUnavailable, err, out)
	}
	return path, nil
}

// Confine confines the calling thread. It cannot be undone: the thread serves to
// start one process and is thrown away.
func (r Rules) Confine() error {
	if err := r.check(); err != nil {
		return err
	}
	if r.Level == Off {
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("confine: no_new_privs: %w", err)
	}
	if r.Level == Privileges {
		return nil
	}
	if err := r.landlock(ABI()); err != nil {
		return fmt.Errorf("confine: Landlock: %w", err)
	}
	if r.Level == Landlock {
		return dropCapabilities() // bubblewrap needs them, where there are any, and drops them itself
	}
	return nil
}

// dropCapabilities takes from the calling thread what root may beyond others,
// such as reading the environment of any process. With no_new_privs no program
// gets them back.
func dropCapabilities() error {
	var none [2]unix.CapUserData
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0]); err != nil {
		return fmt.Errorf("confine: drop capabilities: %w", err)
	}
	return nil
}

// What is done with a file or folder, in groups.
const (
	readFile = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE
	readDir  = readFile | unix.LANDLOCK_ACCESS_FS_READ_DIR
	useFile  = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// files returns what this version of Landlock knows about files.
func files(abi int) uint64 {
	const first, refer, truncate, ioctl = 13, 14, 15, 16 // bits
	switch {
	case abi >= 5:
		return 1<<ioctl - 1
	case abi >= 3:
		return 1<<truncate - 1
	case abi == 2:
		return 1<<refer - 1
	default:
		return 1<<first - 1
	}
}

func (r Rules) landlock(abi int) error {
	var attr unix.LandlockRulesetAttr
	if r.Level == Landlock {
		attr.Access_fs = files(abi)
	}
	if abi >= 4 && !r.Network {
		attr.Access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if abi >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_SIGNAL | unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	}
	if attr == (unix.LandlockRulesetAttr{}) {
		return nil // bubblewrap on a kernel that has nothing to add
	}
	set, err := createRuleset(&attr)
	if err != nil {
		return fmt.Errorf("make a set of rules: %w", err)
	}
	defer func() { _ = unix.Close(set) }()
	if r.Level == Landlock {
		if err := r.paths(set, attr.Access_fs); err != nil {
			return err
		}
	}
	if err := restrictSelf(set); err != nil {
		return fmt.Errorf("restrict the thread: %w", err)
	}
	return nil
}

// paths adds what may be read and written.
func (r Rules) paths(set int, handled uint64) error {
	for _, p := range r.readable() {
		if err := allow(set, p, readDir&handled); err != nil {
			return err
		}
	}
	for _, p := range devices {
		if err := allow(set, p, useFile&handled); err != nil {
			return err
		}
	}
	for _, p := range append([]string{shared}, r.Write...) {
		const special = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
		if err := allow(set, p, handled&^special); err != nil {
			return err
		}
	}
	return nil
}

// allow adds a rule for a path, which may be missing.
func allow(set int, path string, access uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil //nolint:nilerr // what does not exist needs no rule
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("look at %s: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= readFile | useFile
	}
	if err := addRule(set, &unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}); err != nil {
		return fmt.Errorf("a rule for %s: %w", path, err)
	}
	return nil
}

// Wrap returns the command that runs a program under these rules: with
// bubblewrap, that one; else the program itself.
func (r Rules) Wrap(program string, args []string) (string, []string, error) {
	if r.Level != Bubblewrap {
		return program, args, nil
	}
	bwrap, err := bubblewrap()
	if err != nil {
		return "", nil, err
	}
	return bwrap, append(append(r.bubblewrapArgs(), "--", program), args...), nil
}

func (r Rules) bubblewrapArgs() []string {
	args := []string{"--cap-drop", "ALL", "--unshare-ipc", "--unshare-uts", "--die-with-parent", "--dev", "/dev"}
	if !r.Network {
		args = append(args, "--unshare-net")
	}
	for _, p := range r.readable() {
		args = append(args, "--ro-bind", p, p)
	}
	args = append(args, "--bind", shared, shared)
	for _, p := range r.Write {
		args = append(args, "--bind", p, p)
	}
	return append(args, "--chdir", "/")
}
