package sandbox

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

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

// Strongest returns the highest rung that this system has. It may run runsc and bubblewrap
// to see that.
func Strongest() Level { return AtMost(GVisor) }

// AtMost returns the highest rung up to most that this system has. It looks at no rung
// above: whether there is bubblewrap shows only when it is run, which takes longer than
// the start of an interpreter.
func AtMost(most Level) Level {
	levels := Levels()
	slices.Reverse(levels)
	for _, l := range levels {
		switch {
		case l > most, l == User: // sessions of other users make files of other owners: who wants that says so
		case l == GVisor && lacksOfGVisor() != nil: // likewise
		case Available(l) == nil:
			return l
		}
	}
	return Off
}

// Describe says in words what the rung does on this system, and what of that the rules leave out.
func (r Rules) Describe() string {
	switch r.Level {
	case Off:
		return "the host's own rights"
	case Privileges:
		return "no_new_privs: nothing that is started gains rights"
	case Landlock:
		text := "Landlock ABI " + strconv.Itoa(ABI()) + ": files by rules"
		if ABI() >= netPorts && !r.Network && !r.Loopback {
			text += ", no TCP"
		}
		if ABI() >= 6 {
			text += ", no signals to processes outside"
		}
		return text
	case Seccomp:
		text := r.on(Landlock).Describe() + "; seccomp: system calls by rules"
		if !r.Network && !r.Loopback {
			text += ", no sockets of the network"
		}
		return text
	case User:
		return r.on(Seccomp).Describe() + "; a user of its own for each session, and one for programs"
	case GVisor:
		return "gVisor: a kernel of its own in a process of the host, with " + r.own("file system", "network", "IPC", "processes") + " of its own"
	default:
		return "bubblewrap: " + r.own("file system", "network", "IPC") + " of its own; seccomp: system calls by rules"
	}
}

// on are the rules on another rung.
func (r Rules) on(l Level) Rules {
	r.Level = l
	return r
}

// own lists what a rung has of its own, without the network where that is the host's.
func (r Rules) own(all ...string) string {
	if r.Network {
		all = slices.DeleteFunc(all, func(kind string) bool { return kind == "network" })
	}
	last := len(all) - 1
	return strings.Join(all[:last], ", ") + " and " + all[last]
}

// Available returns nil when this system has the rung.
func Available(l Level) error {
	switch l {
	case Landlock:
		if ABI() == 0 {
			return fmt.Errorf("%w: this kernel has no Landlock (Linux 5.13 or newer, with lsm=landlock)", ErrUnavailable)
		}
	case Seccomp:
		if err := Available(Landlock); err != nil {
			return err
		}
		if strconv.IntSize < 64 {
			return fmt.Errorf("%w: the filter of system calls is for 64-bit systems", ErrUnavailable)
		}
		if !hasFilters() {
			return fmt.Errorf("%w: this kernel has no filters of system calls that ask (seccomp, Linux 5.0 or newer)", ErrUnavailable)
		}
	case User:
		if err := Available(Seccomp); err != nil {
			return err
		}
		return becomesOthers()
	case Bubblewrap:
		_, err := bubblewrap()
		return err
	case GVisor:
		_, err := gvisor()
		return err
	}
	return nil
}

// becomesOthers returns nil when this process may become other users.
func becomesOthers() error {
	header, data := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
	if err := unix.Capget(&header, &data[0]); err != nil {
		return fmt.Errorf("%w: ask for capabilities: %w", ErrUnavailable, err)
	}
	if os.Geteuid() != 0 || data[0].Effective&others != others {
		return fmt.Errorf("%w: a user for each session takes root, with the capabilities to become others (setuid, setgid, kill, chown)", ErrUnavailable)
	}
	return nil
}

// others are the capabilities that it takes to give sessions users of their own.
const others = 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID | 1<<unix.CAP_KILL | 1<<unix.CAP_CHOWN

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
	if r.Level >= Bubblewrap {
		return nil // it needs the capabilities, where there are any, and drops them itself; see Wrap for its filter
	}
	if err := r.dropCapabilities(); err != nil || r.Level == Landlock {
		return err
	}
	raw, err := r.filter()
	if err != nil {
		return fmt.Errorf("confine: %w", err)
	}
	listener, err := install(raw)
	if err != nil {
		return fmt.Errorf("confine: %w", err)
	}
	go newBroker(listener, r).serve() // ends with the last process under the filter, which is its join
	return nil
}

// kept are the capabilities that [Rules.Users] leaves.
func (r Rules) kept() uint32 {
	if r.Users {
		return 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID | 1<<unix.CAP_KILL
	}
	return 0
}

// dropCapabilities takes from the calling thread what root may beyond others,
// such as reading the environment of any process. With no_new_privs no program
// gets them back.
func (r Rules) dropCapabilities() error {
	data := [2]unix.CapUserData{{Effective: r.kept(), Permitted: r.kept()}}
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &data[0]); err != nil {
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

// Scopes returns the bits of Landlock with which one process under these rules can keep
// itself from its siblings, 0 where there are none: a set of rules of its own that has
// them lets it signal and trace only what it has started.
func (r Rules) Scopes() uint64 {
	if r.Inside() {
		return 0 // there is no Landlock in that kernel
	}
	return r.scopes()
}

// scopes are those of the thread that is confined.
func (r Rules) scopes() uint64 {
	if r.Level >= Landlock && ABI() >= 6 {
		return unix.LANDLOCK_SCOPE_SIGNAL | unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	}
	return 0
}

func (r Rules) landlock(abi int) error {
	var attr rulesetAttr
	if r.Level < Bubblewrap {
		attr.accessFS = files(abi)
	}
	if abi >= 4 && !r.Network && (!r.Loopback || r.Port != 0) {
		attr.accessNet = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	attr.scoped = r.scopes()
	if attr == (rulesetAttr{}) {
		return nil // a rung of namespaces on a kernel that has nothing to add
	}
	set, err := createRuleset(&attr)
	if err != nil {
		return fmt.Errorf("make a set of rules: %w", err)
	}
	defer func() { _ = unix.Close(set) }()
	if r.Level < Bubblewrap {
		if err := r.paths(set, attr.accessFS); err != nil {
			return err
		}
	}
	if r.reaches() && r.Port != 0 {
		port := portAttr{access: unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, port: uint64(r.Port)} //nolint:gosec // of a listener
		if err := addPort(set, &port); err != nil {
			return fmt.Errorf("allow port %d: %w", r.Port, err)
		}
	}
	if err := restrictSelf(set); err != nil {
		return fmt.Errorf("restrict the thread: %w", err)
	}
	return nil
}

// paths adds what may be read and written.
func (r Rules) paths(set int, handled uint64) error {
	guards := r.guards()
	for _, p := range r.readable() {
		if slices.Contains(guards, p) {
			if err := parts(set, surveyed.of(p), handled); err != nil {
				return err
			}
			continue
		}
		if err := allow(set, p, readDir&handled); err != nil {
			return err
		}
	}
	for _, p := range devices {
		if err := allow(set, p, useFile&handled); err != nil {
			return err
		}
	}
	write := r.Write
	if !r.Private {
		write = append([]string{shared}, write...)
	}
	for _, p := range write {
		const special = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
		if err := allow(set, p, handled&^special); err != nil {
			return err
		}
	}
	return nil
}

// parts adds what others may read of a folder of the system.
func parts(set int, s survey, handled uint64) error {
	for _, p := range s.open {
		if err := allow(set, p, readDir&handled); err != nil {
			return err
		}
	}
	for _, p := range s.listed {
		if err := allow(set, p, unix.LANDLOCK_ACCESS_FS_READ_DIR&handled); err != nil {
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
