package sandbox

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The three calls of Landlock, which x/sys has numbers and structures for and no
// functions. They concern the calling thread and sets of rules alone.

// landlockVersion asks the kernel for its version of Landlock.
func landlockVersion() (int, error) {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	return int(v), failed(errno) //nolint:gosec // a small number
}

// rulesetAttr is what the kernel calls struct landlock_ruleset_attr: that of package unix
// has other names and another length from version to version, and a program may be linked
// with any.
type rulesetAttr struct{ accessFS, accessNet, scoped uint64 }

// createRuleset returns the descriptor of a new set of rules.
func createRuleset(attr *rulesetAttr) (int, error) {
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(attr)), unsafe.Sizeof(*attr), 0)
	return int(fd), failed(errno) //nolint:gosec // a descriptor
}

// addRule adds one for all that is beneath a path.
func addRule(set int, attr *unix.LandlockPathBeneathAttr) error {
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(attr)), 0, 0, 0) //nolint:gosec // a descriptor
	return failed(errno)
}

// portAttr is what the kernel calls struct landlock_net_port_attr.
type portAttr struct{ access, port uint64 }

// addPort adds a rule for a port.
func addPort(set int, attr *portAttr) error {
	const netPort = 2                                                                                                       // LANDLOCK_RULE_NET_PORT
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), netPort, uintptr(unsafe.Pointer(attr)), 0, 0, 0) //nolint:gosec // a descriptor
	return failed(errno)
}

// restrictSelf confines the calling thread to a set of rules.
func restrictSelf(set int) error {
	_, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(set), 0, 0) //nolint:gosec // a descriptor
	return failed(errno)
}

func failed(errno unix.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}
