package sandbox

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// The filter of system calls. It allows what is not named: sessions run whatever
// Python programs run, and a list of what those need would be wrong for the next
// library. What it refuses is what Landlock has no rule for. Three things would make
// such a list useless, and each is seen to:
//
//   - Calls of another architecture, or of x32, have other numbers: they are refused.
//   - The kernel looks at the lower half of an argument that is an int: so does the
//     filter, or a bit in the upper half would get everything past it.
//   - A kernel newer than the list has calls that are not on it: numbers beyond those
//     that are known are answered as a kernel answers that does not have them.

// What the filter answers.
const (
	allowed  = seccomp.ActionAllow
	refused  = seccomp.ActionErrno | seccomp.Action(unix.EPERM)
	noAccess = seccomp.ActionErrno | seccomp.Action(unix.EACCES)
	missing  = seccomp.ActionErrno | seccomp.Action(unix.ENOSYS)
	asked    = seccomp.ActionUserNotify // the broker does it
	idle     = seccomp.ActionErrno      // with no error: nothing is done, and that is called a success
)

// newest is the last number that has been looked at for what it does. From 424 on
// numbers are the same on all architectures.
const newest = unix.SYS_RSEQ_SLICE_YIELD

// never are the calls that are refused whatever their arguments.
var never = []string{
	// Other processes: their memory, descriptors, pages.
	"ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "kcmp", "process_madvise", "process_mrelease", "migrate_pages",
	// The file system as a whole.
	"mount", "umount2", "pivot_root", "chroot", "open_tree", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "open_tree_attr",
	"swapon", "swapoff", "quotactl", "quotactl_fd", "open_by_handle_at", "name_to_handle_at", "fanotify_init", "fanotify_mark", "file_setattr",
	// Namespaces of others; see clone and unshare for new ones.
	"setns",
	// Parts of the kernel that have been the way out of many a sandbox.
	"bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register", "keyctl", "add_key", "request_key",
	"modify_ldt", "vm86", "vm86old", "lookup_dcookie", "uselib", "nfsservctl", "_sysctl", "sysfs", "ustat", "remap_file_pages",
	// What belongs to the machine.
	"kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "create_module", "get_kernel_syms", "query_module", "reboot",
	"iopl", "ioperm", "acct", "settimeofday", "clock_settime", "stime", "sethostname", "setdomainname", "syslog", "vhangup",
	// What every process of the machine finds by a number or a name: System V memory,
	// semaphores and messages, and the messages of POSIX.
	"shmget", "shmat", "shmctl", "shmdt", "semget", "semop", "semtimedop", "semctl", "msgget", "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink",
}

// inodes change a file's permissions, owner, times or attributes. Landlock has no
// rule for them, and the filter sees no paths.
var inodes = []string{
	"chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat", "utime", "utimes", "futimesat", "utimensat",
	"setxattr", "lsetxattr", "fsetxattr", "setxattrat", "removexattr", "lremovexattr", "fremovexattr", "removexattrat",
}

// brokered are the calls that the broker makes; and sockets, where they reach no further than
// this machine.
var brokered = append(slices.Clone(inodes), watching)

// test is one look at an argument: at its lower half, and where wide is set, as with
// an address, at all of it. It holds when the argument has the value, or, with a mask,
// any bit of that.
type test struct {
	arg   uint32
	value uint32
	mask  uint32
	wide  bool
}

// rule is what becomes of a call for which all tests hold.
type rule struct {
	call  string
	tests []test
	then  seccomp.Action
}

// namespaces are the flags that make new ones. The clock's is a signal to clone.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// Requests of ioctl that reach beyond what a descriptor allows: input and settings of
// a terminal, and the flags, attributes and seals of a file that is open for reading.
var requests = []uint32{
	unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCSETD, unix.TIOCCONS,
	0x40086602, 0x40046602, // FS_IOC_SETFLAGS and the one of 32 bits
	0x401c5820,             // FS_IOC_FSSETXATTR
	0x40087602, 0x40047602, // FS_IOC_SETVERSION and the one of 32 bits
	0x40806685,             // FS_IOC_ENABLE_VERITY
	0x800c6613, 0x8010661a, // FS_IOC_SET_ENCRYPTION_POLICY, FS_IOC_REMOVE_ENCRYPTION_KEY
}

// personalities are those that programs set: none, and a question for the one in force.
var personalities = []uint32{0, 8, 0xffffffff}

// own allows a call for the caller alone, whose number is 0 in the argument.
func own(call string, arg uint32) []rule {
	return []rule{{call, []test{{arg: arg, value: 0}}, allowed}, {call, nil, refused}}
}

// sandboxRules returns the rules of the filter, in order: the first that holds for a
// call decides.
func (r Rules) sandboxRules() []rule {
	var all []rule
	for _, call := range never {
		all = append(all, rule{call, nil, refused})
	}
	if r.Level != Bubblewrap { // whose file system is the session's own where it can be written
		for _, call := range brokered {
			all = append(all, rule{call, nil, asked})
		}
	}
	all = append(all,
		rule{"clone3", nil, missing}, // its flags are where the filter cannot see them; programs then take clone
		rule{"clone", []test{{mask: namespaces}}, refused},
		rule{"unshare", []test{{mask: namespaces | 0x80}}, refused},
		// Limits: of oneself, and a look at those of others.
		rule{"prlimit64", []test{{arg: 0, value: 0}}, allowed},
		rule{"prlimit64", []test{{arg: 2, value: 0, wide: true}}, allowed},
		rule{"prlimit64", nil, refused},
		// Priority: of the process and of its group.
		rule{"setpriority", []test{{arg: 0, value: unix.PRIO_USER}}, refused},
	)
	all = append(all, own("setpriority", 1)...)
	all = append(all, rule{"ioprio_set", []test{{arg: 0, value: 3}}, refused}) // IOPRIO_WHO_USER
	all = append(all, own("ioprio_set", 1)...)
	// A thread that asks for the scheduling that it has names itself by its number, which is
	// not known here. ZeroMQ does so in each of its threads, and ends the process where it is refused.
	all = append(all, rule{"sched_setscheduler", []test{{arg: 0, value: 0}}, allowed}, rule{"sched_setscheduler", []test{{arg: 1, value: unix.SCHED_NORMAL}}, idle})
	for _, call := range []string{"sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr", "move_pages"} {
		all = append(all, own(call, 0)...)
	}
	for _, p := range personalities {
		all = append(all, rule{"personality", []test{{value: p}}, allowed})
	}
	all = append(all, rule{"personality", nil, refused})
	for _, request := range requests {
		all = append(all, rule{"ioctl", []test{{arg: 1, value: request}}, refused})
	}
	all = append(all,
		rule{"fcntl", []test{{arg: 1, value: unix.F_SETLEASE}}, refused}, // it holds up whoever opens the file next
		rule{"adjtimex", nil, refused}, rule{"clock_adjtime", nil, refused},
	)
	return append(all, r.sockets()...)
}

// sockets are the rules of the network. Sockets of this machine's own file system and
// pairs of them stay: Python's multiprocessing and asyncio are made of those.
func (r Rules) sockets() []rule {
	all := []rule{
		{"socket", []test{{value: unix.AF_UNIX}}, allowed},
		{"socketpair", []test{{value: unix.AF_UNIX}}, allowed},
		{"socketpair", nil, noAccess},
	}
	const kinds = unix.SOCK_NONBLOCK | unix.SOCK_CLOEXEC
	if r.Network {
		for _, family := range []uint32{unix.AF_INET, unix.AF_INET6} {
			for _, kind := range []uint32{unix.SOCK_STREAM, unix.SOCK_DGRAM} {
				for _, flags := range []uint32{0, unix.SOCK_NONBLOCK, unix.SOCK_CLOEXEC, kinds} {
					for _, protocol := range []uint32{0, unix.IPPROTO_TCP, unix.IPPROTO_UDP} {
						all = append(all, rule{"socket", []test{{value: family}, {arg: 1, value: kind | flags}, {arg: 2, value: protocol}}, allowed})
					}
				}
			}
		}
		// The addresses and routes of this machine, which the C library asks for.
		all = append(all, rule{"socket", []test{{value: unix.AF_NETLINK}, {arg: 2, value: unix.NETLINK_ROUTE}}, allowed})
		return append(all, rule{"socket", nil, noAccess})
	}
	if r.Loopback && r.Level == Bubblewrap { // whose network is the session's own, and has nothing else
		return append(all, rule{"socket", []test{{value: unix.AF_INET}}, allowed}, rule{"socket", nil, noAccess})
	}
	if r.reaches() { // the broker makes them, so that they reach no further
		for _, flags := range []uint32{0, unix.SOCK_NONBLOCK, unix.SOCK_CLOEXEC, kinds} {
			for _, protocol := range []uint32{0, unix.IPPROTO_TCP} {
				all = append(all, rule{making, []test{{value: unix.AF_INET}, {arg: 1, value: unix.SOCK_STREAM | flags}, {arg: 2, value: protocol}}, asked})
			}
		}
	}
	return append(all,
		rule{"socket", nil, noAccess},
		// A connection begun by a message, on a socket that came from elsewhere.
		rule{"sendto", []test{{arg: 3, mask: unix.MSG_FASTOPEN}}, noAccess},
		rule{"sendmsg", []test{{arg: 2, mask: unix.MSG_FASTOPEN}}, noAccess},
		rule{"sendmmsg", []test{{arg: 3, mask: unix.MSG_FASTOPEN}}, noAccess},
	)
}

// filter assembles the program that the kernel runs before each call.
func (r Rules) filter() ([]bpf.RawInstruction, error) {
	machine, err := arch.GetInfo("")
	if err != nil {
		return nil, fmt.Errorf("%w: no system call is known by its number on this architecture: %w", ErrUnavailable, err)
	}
	var body []bpf.Instruction
	for _, rule := range r.sandboxRules() {
		if number, there := machine.SyscallNames[rule.call]; there {
			body = append(body, rule.assemble(uint32(number))...) //nolint:gosec // a number of a call
		} else if number, there := added[rule.call]; there {
			body = append(body, rule.assemble(number)...)
		}
	}
	head := []bpf.Instruction{
		bpf.LoadAbsolute{Off: 4, Size: word}, // the architecture
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(machine.ID), SkipTrue: 1},
		bpf.RetConstant{Val: uint32(missing)},
		loadNumber,
		bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: newest, SkipFalse: 1}, // x32 too, whose numbers have a bit of their own
		bpf.RetConstant{Val: uint32(missing)},
	}
	raw, err := bpf.Assemble(append(append(head, body...), bpf.RetConstant{Val: uint32(allowed)}))
	if err != nil {
		return nil, fmt.Errorf("assemble the filter: %w", err)
	}
	return raw, nil
}

// added are calls that are newer than the library's table.
var added = map[string]uint32{"open_tree_attr": unix.SYS_OPEN_TREE_ATTR, "file_setattr": unix.SYS_FILE_SETATTR}

// word is the size of what the filter looks at, in bytes.
const word = 4

// loadNumber loads the number of the call.
var loadNumber = bpf.LoadAbsolute{Off: 0, Size: word}

// argument loads a half of an argument, the lower or the upper one.
func argument(n uint32, upper bool) bpf.Instruction {
	const first, size = 16, 8
	off := first + n*size
	if upper != (binary.NativeEndian.Uint16([]byte{0, 1}) == 1) {
		off += word
	}
	return bpf.LoadAbsolute{Off: off, Size: word}
}

// assemble returns the part of the program that is a rule. The number of the call is
// loaded before it and behind it.
func (r rule) assemble(number uint32) []bpf.Instruction {
	var looks []bpf.Instruction // each pair loads, and goes on where the test holds
	for _, t := range r.tests {
		if t.wide {
			looks = append(looks, argument(t.arg, true), bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0})
		}
		look := bpf.JumpIf{Cond: bpf.JumpEqual, Val: t.value}
		if t.mask != 0 {
			look = bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: t.mask}
		}
		looks = append(looks, argument(t.arg, false), look)
	}
	for i := range looks {
		if look, ok := looks[i].(bpf.JumpIf); ok {
			look.SkipFalse = uint8(len(looks) - i) //nolint:gosec // to behind the answer; a rule has a few tests
			looks[i] = look
		}
	}
	block := append(looks, bpf.RetConstant{Val: uint32(r.then)}) //nolint:gocritic // looks is not used again
	if len(r.tests) > 0 {
		block = append(block, loadNumber)
	}
	return append([]bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpEqual, Val: number, SkipFalse: uint8(len(block))}}, block...) //nolint:gosec // short
}
