package sandbox

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/coppice-run/coppice/test/testpython"
)

// judge runs a filter on a call, as the kernel would.
func judge(t *testing.T, r Rules, machine uint32, number uint32, args ...uint64) seccomp.Action {
	t.Helper()
	raw, err := r.filter()
	require.NoError(t, err)
	require.Less(t, len(raw), 4096, "what the kernel takes")
	program := make([]bpf.Instruction, len(raw))
	for i := range raw {
		program[i] = raw[i].Disassemble()
	}
	vm, err := bpf.NewVM(program)
	require.NoError(t, err)
	// The machine of the test loads in the order of the network; the kernel's in its own.
	const words = 16
	data := make([]byte, 0, words*word)
	put := func(v uint32) { data = binary.BigEndian.AppendUint32(data, v) }
	put(number)
	put(machine)
	put(0) // the instruction
	put(0)
	for i := range 6 {
		var v uint64
		if i < len(args) {
			v = args[i]
		}
		halves := [2]uint32{uint32(v), uint32(v >> 32)} //nolint:gosec // halves
		if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 {
			halves[0], halves[1] = halves[1], halves[0]
		}
		put(halves[0])
		put(halves[1])
	}
	got, err := vm.Run(data)
	require.NoError(t, err)
	return seccomp.Action(got) //nolint:gosec // of 32 bits
}

func TestTheFilter(t *testing.T) {
	machine, err := arch.GetInfo("")
	require.NoError(t, err)
	const upper = 1 << 32
	inside := Rules{Level: Seccomp}
	online := Rules{Level: Seccomp, Network: true}
	within := Rules{Level: User, Loopback: true, Port: 9}
	named := Rules{Level: Bubblewrap, Loopback: true}
	for _, c := range []struct {
		r    Rules
		call string
		args []uint64
		want seccomp.Action
	}{
		{inside, "read", nil, allowed},
		{inside, "execve", nil, allowed},
		{inside, "ptrace", nil, refused},
		{inside, "io_uring_setup", nil, refused},
		{inside, "setns", nil, refused},
		{inside, "shmget", nil, refused},
		{inside, "fchmodat", nil, asked},
		{inside, "fchownat", nil, asked},
		{inside, "inotify_add_watch", nil, asked},
		{inside, "fanotify_init", nil, refused},
		{Rules{Level: Bubblewrap}, "fchmodat", nil, allowed},
		{Rules{Level: Bubblewrap}, "inotify_add_watch", nil, allowed},
		{inside, "clone3", nil, missing},
		{inside, "clone", []uint64{unix.CLONE_VM | unix.CLONE_VFORK | uint64(unix.SIGCHLD)}, allowed},
		{inside, "clone", []uint64{unix.CLONE_THREAD | unix.CLONE_VM}, allowed},
		{inside, "clone", []uint64{unix.CLONE_NEWUSER}, refused},
		{inside, "clone", []uint64{upper | unix.CLONE_NEWNET}, refused},
		{inside, "unshare", []uint64{unix.CLONE_NEWNS}, refused},
		{inside, "unshare", []uint64{unix.CLONE_FILES}, allowed},
		{inside, "prlimit64", []uint64{0, 7, 0x7f0000000000, 0}, allowed},
		{inside, "prlimit64", []uint64{4711, 7, 0, 0x7f0000000000}, allowed},
		{inside, "prlimit64", []uint64{4711, 7, 0x7f0000000000}, refused},
		{inside, "prlimit64", []uint64{4711, 7, upper}, refused},
		{inside, "prlimit64", []uint64{upper, 7, 4096}, allowed}, // the kernel reads 0
		{inside, "setpriority", []uint64{unix.PRIO_PROCESS, 0, 5}, allowed},
		{inside, "setpriority", []uint64{unix.PRIO_PROCESS, 4711, 5}, refused},
		{inside, "setpriority", []uint64{unix.PRIO_USER, 0, 5}, refused},
		{inside, "setpriority", []uint64{upper | unix.PRIO_USER, 0, 5}, refused},
		{inside, "sched_setaffinity", []uint64{0}, allowed},
		{inside, "sched_setaffinity", []uint64{1}, refused},
		{inside, "sched_setscheduler", []uint64{0, unix.SCHED_BATCH}, allowed},
		{inside, "sched_setscheduler", []uint64{1, unix.SCHED_NORMAL}, idle},
		{inside, "sched_setscheduler", []uint64{1, unix.SCHED_BATCH}, refused},
		{inside, "personality", []uint64{0xffffffff}, allowed},
		{inside, "personality", []uint64{0x0040000}, refused},
		{inside, "ioctl", []uint64{0, unix.TCGETS}, allowed},
		{inside, "ioctl", []uint64{0, unix.TIOCSTI}, refused},
		{inside, "ioctl", []uint64{0, upper | unix.TIOCSTI}, refused},
		{inside, "fcntl", []uint64{0, unix.F_SETLEASE}, refused},
		{inside, "fcntl", []uint64{0, unix.F_SETOWN}, allowed},
		{inside, "socket", []uint64{unix.AF_UNIX, unix.SOCK_STREAM}, allowed},
		{inside, "socket", []uint64{unix.AF_INET, unix.SOCK_STREAM}, noAccess},
		{inside, "socket", []uint64{upper | unix.AF_INET, unix.SOCK_STREAM}, noAccess},
		{inside, "socket", []uint64{unix.AF_INET, unix.SOCK_STREAM, 262}, noAccess},
		{inside, "socket", []uint64{unix.AF_NETLINK, unix.SOCK_RAW}, noAccess},
		{inside, "socketpair", []uint64{unix.AF_UNIX}, allowed},
		{inside, "socketpair", []uint64{unix.AF_TIPC}, noAccess},
		{inside, "sendto", []uint64{3, 0, 0, unix.MSG_NOSIGNAL}, allowed},
		{inside, "sendto", []uint64{3, 0, 0, unix.MSG_FASTOPEN | unix.MSG_NOSIGNAL}, noAccess},
		{online, "socket", []uint64{unix.AF_INET, unix.SOCK_STREAM | unix.SOCK_CLOEXEC}, allowed},
		{online, "socket", []uint64{unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_UDP}, allowed},
		{online, "socket", []uint64{unix.AF_INET, unix.SOCK_STREAM, 262}, noAccess},
		{online, "socket", []uint64{unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP}, noAccess},
		{online, "socket", []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE}, allowed},
		{online, "socket", []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER}, noAccess},
		{online, "socket", []uint64{unix.AF_VSOCK, unix.SOCK_STREAM}, noAccess},
		{within, "socket", []uint64{unix.AF_UNIX, unix.SOCK_DGRAM}, allowed},
		{within, "socket", []uint64{unix.AF_INET, unix.SOCK_STREAM | unix.SOCK_CLOEXEC}, asked},
		{within, "socket", []uint64{upper | unix.AF_INET, upper | unix.SOCK_STREAM, unix.IPPROTO_TCP}, asked},
		{within, "socket", []uint64{unix.AF_INET, unix.SOCK_STREAM, 262}, noAccess},
		{within, "socket", []uint64{unix.AF_INET, unix.SOCK_DGRAM}, noAccess},
		{within, "socket", []uint64{unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP}, noAccess},
		{within, "socket", []uint64{unix.AF_INET6, unix.SOCK_STREAM}, noAccess},
		{within, "socket", []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE}, noAccess},
		{within, "sendto", []uint64{3, 0, 0, unix.MSG_FASTOPEN}, noAccess},
		{named, "socket", []uint64{unix.AF_INET, unix.SOCK_DGRAM}, allowed},
		{named, "socket", []uint64{unix.AF_INET6, unix.SOCK_STREAM}, noAccess},
	} {
		number, there := machine.SyscallNames[c.call]
		require.True(t, there, c.call)
		require.Equal(t, c.want, judge(t, c.r, uint32(machine.ID), uint32(number), c.args...), "%s %x", c.call, c.args) //nolint:gosec // a number of a call
	}
	require.Equal(t, missing, judge(t, inside, uint32(arch.I386.ID), 20), "another architecture")
	require.Equal(t, missing, judge(t, inside, uint32(machine.ID), 0x40000000|39), "x32")
	require.Equal(t, missing, judge(t, inside, uint32(machine.ID), newest+1), "a call that is not known yet")
}

// Every call that is named exists on some architecture: a name that was misspelt would
// be left out without a word.
func TestTheCallsOfTheFilterExist(t *testing.T) {
	for _, r := range []Rules{{Level: Seccomp}, {Level: Seccomp, Network: true}, {Level: Seccomp, Loopback: true}} {
		for _, rule := range r.sandboxRules() {
			_, there := added[rule.call]
			for _, machine := range []*arch.Info{arch.X86_64, arch.AARCH64, arch.I386} {
				_, here := machine.SyscallNames[rule.call]
				there = there || here
			}
			require.True(t, there, rule.call)
		}
	}
}

// What the broker does is what the kernel would have done, in the folders that are open,
// and refused elsewhere.
func TestTheBroker(t *testing.T) {
	require.NoError(t, Available(Seccomp))
	dir, outside := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "f"), nil, 0o600))
	require.NoError(t, os.Symlink(filepath.Join(outside, "f"), filepath.Join(dir, "link")))
	r := Rules{Level: Seccomp, Write: []string{dir}}
	for _, c := range []struct {
		command string
		want    string // in what it prints; it succeeds when that is not an error
		fails   bool
	}{
		{"cd " + dir + "; touch a; chmod 0741 a; stat -c %a a", "741", false},
		{"chmod 0640 " + dir + "/a; stat -c %a " + dir + "/a", "640", false},
		{"cd " + dir + "; mkdir -p d/e; chmod -R 0700 d; stat -c %a d d/e", "700\n700", false},
		{"cd " + dir + "; touch -d @12345 a; stat -c %Y a", "12345", false},
		{"cd " + dir + "; touch -h -d @54321 link; stat -c %Y link", "54321", false},
		{"cd " + dir + "; cp -p a b; stat -c %Y b", "12345", false},
		{"chown $(id -u) " + dir + "/a; echo done", "done", false},
		{"cd " + dir + "; chmod 0606 link", "not permitted", true},
		{"cd " + dir + "; chmod 0606 ../" + filepath.Base(filepath.Dir(outside)) + "/../" + filepath.Base(outside) + "/f", "", true},
		{"chmod 0606 " + outside + "/f", "not permitted", true},
		{"chmod 0700 " + outside, "not permitted", true},
		{"chmod 0606 /proc/self/cwd/../" + filepath.Base(outside) + "/f", "", true},
		{"cd " + dir + "; chmod 4755 a", "not permitted", true},
		{"cd " + dir + "; chmod 2755 a", "not permitted", true},
		{"chmod 0777 /dev/shm", "not permitted", true},
		{"touch -c -d @1 /etc/hosts", "not permitted", true},
		{"cd " + dir + "; chmod 0600 nothing", "No such file", true},
		{"chown 12345 " + dir + "/a", "not permitted", true},
	} {
		out, err := confined(t, r, c.command)
		require.Equal(t, c.fails, err != nil, "%s: %s", c.command, out)
		require.Contains(t, out, c.want, c.command)
	}
	info, err := os.Stat(filepath.Join(outside, "f"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

// A call whose path is no address changes nothing: not the folder that it is in either.
func TestTheBrokerTakesNoPathForAFolder(t *testing.T) {
	require.NoError(t, Available(Seccomp))
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o750))
	script := filepath.Join(dir, "null.py")
	require.NoError(t, os.WriteFile(script, []byte(`import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
me, group, cwd, empty = os.getuid(), os.getgid(), -100, 0x1000
for name, args in [
    ("chmod", (None, 0o711)), ("fchmodat", (cwd, None, 0o711, 0)), ("chown", (None, me, group)), ("lchown", (None, me, group)),
    ("fchownat", (cwd, None, me, group, empty)), ("utimes", (None, None)), ("setxattr", (None, b"user.x", b"y", 1, 0)),
]:
    result = getattr(libc, name)(*args)
    print(name, result, ctypes.get_errno(), flush=True)
`), 0o600))
	python := testpython.Path(t)
	base, err := exec.CommandContext(t.Context(), python, "-c", "import sys; print(sys.base_prefix)").Output()
	require.NoError(t, err)
	r := Rules{Level: Seccomp, Write: []string{dir}, Read: []string{filepath.Dir(filepath.Dir(python)), strings.TrimSpace(string(base))}}
	out, err := confined(t, r, "cd "+dir+" && exec "+python+" null.py")
	require.NoError(t, err, out)
	for name := range strings.SplitSeq("chmod fchmodat chown lchown fchownat utimes setxattr", " ") {
		require.Contains(t, out, fmt.Sprintf("%s -1 %d\n", name, unix.EFAULT), out)
	}
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o750), info.Mode().Perm())
}
