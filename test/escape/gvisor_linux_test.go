package escape_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/environment"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/proc"
	"github.com/coppice-run/coppice/test/testpython"
	"github.com/coppice-run/coppice/workspace"
	"github.com/coppice-run/coppice/workspace/procs"
)

// lacksGVisor says that the rung is not to be had, as the tables do.
func lacksGVisor(t *testing.T) bool {
	t.Helper()
	why := environment.LacksRung(kernel.IsolationGVisor)
	if why != nil {
		t.Logf("RUNG %s as uid %d: not here, and not tried: %v", kernel.IsolationGVisor, os.Geteuid(), why)
	}
	return why != nil
}

// owns does what the rung gvisor lets code do to a kernel of its own.
const owns = `import ctypes, json, socket
libc = ctypes.CDLL(None)
key = %d
made = [libc.shmget(key, 4096, 0o1600), libc.semget(key, 1, 0o1600), libc.msgget(key, 0o1600)]
listening = socket.socket(); listening.bind(('0.0.0.0', 0)); listening.listen()
abstract = socket.socket(socket.AF_UNIX); abstract.bind('\0coppice-%d'); abstract.listen()
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'from inside', ('127.0.0.1', %d))
display({'application/json': {'made': min(made), 'port': listening.getsockname()[1]}}, raw=True)`

// TestWhatASandboxOwns: what code does to the kernel of its sandbox is not there for the
// host, and is gone with the sandbox.
func TestWhatASandboxOwns(t *testing.T) {
	if lacksGVisor(t) {
		return
	}
	dir := shared(t)
	h := host(t, python(t), kernel.IsolationGVisor, dir)
	const key = 0x4c0ffee
	var lc net.ListenConfig
	datagrams, err := lc.ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, datagrams.Close()) }()
	r := call(t, h.Session("s", coppice.In(dir)), fmt.Sprintf(owns, key, key, datagrams.LocalAddr().(*net.UDPAddr).Port))
	require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)
	var got struct{ Made, Port int }
	require.NoError(t, json.Unmarshal(r.JSON[0], &got))
	require.GreaterOrEqual(t, got.Made, 0, "they were made in the sandbox")
	for _, kind := range []string{"shm", "sem", "msg"} {
		table, err := os.ReadFile("/proc/sysvipc/" + kind)
		require.NoError(t, err)
		require.NotContains(t, string(table), fmt.Sprint(key), kind)
	}
	var d net.Dialer
	_, err = d.DialContext(t.Context(), "tcp", fmt.Sprint("127.0.0.1:", got.Port))
	require.Error(t, err, "nothing of the host listens there")
	_, err = d.DialContext(t.Context(), "unix", fmt.Sprint("@coppice-", key))
	require.Error(t, err)
	// A datagram over the loopback is there when it was sent: the first that is read is ours.
	to, err := d.DialContext(t.Context(), "udp", datagrams.LocalAddr().String())
	require.NoError(t, err)
	defer func() { require.NoError(t, to.Close()) }()
	_, err = to.Write([]byte("from the host"))
	require.NoError(t, err)
	buffer := make([]byte, 64)
	n, _, err := datagrams.ReadFrom(buffer)
	require.NoError(t, err)
	require.Equal(t, "from the host", string(buffer[:n]))
}

// sandboxesShare is what succeeds in a sandbox and reaches nothing of another one.
var sandboxesShare = map[string]string{
	"become the user": "it is the user already",
	"become root":     "it is root already, which is worth nothing outside of its kernel",
	"join the group":  "it is in the group already",
	"open a port":     "of its own loopback",
	"send to a port":  "of its own loopback",

	"list the folders of all":   "there is no other than its own",
	"signal the fork server":    "which is its own: each kernel has a process 1",
	"slow all of the user down": "those of its own kernel",
}

// TestWorkspacesApartByKernels has a session of one workspace attack one of another, each in a
// sandbox with a kernel of its own, on both backends.
func TestWorkspacesApartByKernels(t *testing.T) {
	if lacksGVisor(t) {
		return
	}
	for name, o := range map[string]struct {
		python  string
		backend coppice.Backend
	}{
		"runner":  {python(t), coppice.Runner(coppice.RunnerOptions{Spares: -1})},
		"gateway": {testpython.Path(t), coppice.Gateway(coppice.GatewayOptions{WarmKernels: -1})},
	} {
		t.Run(name, func(t *testing.T) { //nolint:paralleltest // as the other tables
			h := host(t, o.python, kernel.IsolationGVisor, shared(t), func(all *coppice.Options) {
				all.Home, all.Backend = shared(t), o.backend
				all.Isolation.Read = filepath.SplitList(os.Getenv(packagesVariable))
			})
			for _, name := range []string{"victim", "attacker"} {
				folder := shared(t)
				_, err := h.Workspace(t.Context(), name, workspace.Options{Folder: folder, Env: map[string]string{"HOME": folder}})
				require.NoError(t, err)
			}
			// Both kernels count their processes from one: those of the victim get numbers that the
			// attacker has none of.
			r := call(t, h.Session("first", coppice.InWorkspace("victim")), "import os\nfor _ in range(60):\n    if (pid := os.fork()) == 0: os._exit(0)\n    os.waitpid(pid, 0)")
			require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)
			duel(t, "workspace", sandboxesShare, h.Session("s", coppice.InWorkspace("victim")), h.Session("s", coppice.InWorkspace("attacker")))
		})
	}
}

// TestAKilledHostOfSandboxes kills a host with SIGKILL whose workspaces have sandboxes, with
// sessions, programs, and daemons of both in them. What is outside of the sandboxes are the
// processes that they run in, which are all gone with it.
func TestAKilledHostOfSandboxes(t *testing.T) {
	if lacksGVisor(t) {
		return
	}
	for _, b := range []struct {
		backend, host string
		most          int // a gateway in a sandbox takes seconds to come up
	}{{"runner", "TestAKilledHostOfWorkspaces", 50}, {"gateway", "TestAKilledHostOfGateways", 20}} {
		count := 2
		if full {
			count = b.most
		}
		t.Run(b.backend, func(t *testing.T) { killsSandboxes(t, b.host, count) }) //nolint:paralleltest // it counts what is left after a time
	}
}

// killsSandboxes has a test be the host of so many workspaces with sandboxes, and kills it.
func killsSandboxes(t *testing.T, name string, count int) {
	t.Helper()
	mark := strconv.Itoa(1_000_000 + rand.IntN(1_000_000_000)) //nolint:gosec // it only has to differ
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+name+"$", "-test.v")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %s", hostVariable, kernel.IsolationGVisor, count, mark))
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	said := ""
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "ready"; {
		said += lines.Text() + "\n"
	}
	below := proc.Below(cmd.Process.Pid)
	const each = 3 * 3 // sandboxes, and runsc, its gofer and the kernel for each
	require.Greater(t, len(below), count*each, "%s", said)
	require.NoError(t, cmd.Process.Kill())
	killed := time.Now()
	_ = cmd.Wait() // it was killed, as it should be
	left, late, counted, ended := below, 0, false, time.Duration(0)
	require.Eventually(t, func() bool {
		after := time.Since(killed) >= 2*time.Second
		left = nil
		for _, p := range below {
			if proc.Alive(p.PID) {
				left = append(left, p)
			}
		}
		ended = time.Since(killed)
		if after && !counted {
			late, counted = len(slices.DeleteFunc(slices.Clone(left), func(p proc.Process) bool { return strings.Contains(p.Command, "coppice-owner") })), true
		}
		return len(left) == 0
	}, 30*time.Second, 10*time.Millisecond, "left behind: %v", left)
	t.Logf("RUNG %s as uid %d: host with %d workspaces killed: %d processes, %d left after 2 s besides those that end them, all gone after %v", kernel.IsolationGVisor, os.Geteuid(), count, len(below), late, ended.Round(time.Millisecond))
}

// inSandbox is a program that says where it is, and what it hears.
const inSandbox = `import json, os, resource, signal, sys
state = dict(line.split(':', 1) for line in open('/proc/self/status') if ':' in line)
print(json.dumps({
    'rights': int(state['CapEff'], 16), 'pid': os.getpid(), 'home': os.environ['HOME'], 'secret': os.environ.get('SECRET'),
    'folder': os.getcwd(), 'files': resource.getrlimit(resource.RLIMIT_NOFILE)[0], 'terminal': os.isatty(1),
    'outside': os.path.exists('/var/tmp') or os.listdir(%q) != ['workspaces'],
}), flush=True)
open('here', 'w').write('x')
def heard(number, _):
    print('heard', number, flush=True)
    if number == signal.SIGTERM: sys.exit(7)
for number in (signal.SIGUSR1, signal.SIGTERM): signal.signal(number, heard)
print('up', flush=True)
while True: signal.pause()`

// TestProgramsInSandboxes: a program of a workspace has a sandbox of its own, in which it has
// its folder, its environment and its limits, hears signals, and ends by an exit code.
func TestProgramsInSandboxes(t *testing.T) {
	if lacksGVisor(t) {
		return
	}
	h := host(t, python(t), kernel.IsolationGVisor, shared(t), func(o *coppice.Options) {
		o.Home, o.Env = shared(t), append(os.Environ(), "SECRET=x")
	})
	w, err := h.Workspace(t.Context(), "w", workspace.Options{Limits: coppice.Limits{Files: 99, Memory: 1 << 30}})
	require.NoError(t, err)
	for name, terminal := range map[string]*procs.Size{"pipes": nil, "terminal": {}} {
		p, err := w.Start(t.Context(), workspace.ProcessOptions{
			Args: []string{python(t), "-c", fmt.Sprintf(inSandbox, h.Dir())}, Env: map[string]string{"HOME": "its"}, Terminal: terminal,
		})
		require.NoError(t, err)
		r, err := p.Read(0)
		require.NoError(t, err)
		until := func(wanted string) string {
			said := ""
			for !strings.Contains(said, wanted) {
				entries, err := r.Next(t.Context())
				require.NoError(t, err, "%s: %s", name, said)
				for _, entry := range entries {
					e, err := entry.Event()
					require.NoError(t, err)
					said += string(e.Data)
				}
			}
			return said
		}
		said := until("up")
		var got map[string]any
		require.NoError(t, json.Unmarshal([]byte(strings.SplitN(said, "\n", 2)[0]), &got), "%s: %s", name, said)
		require.Equal(t, map[string]any{
			"rights": 0.0, "pid": 1.0, "home": "its", "secret": nil, "folder": w.Folder(), "files": 99.0, "terminal": terminal != nil, "outside": false,
		}, got, name)
		require.NoError(t, p.Signal("USR1"))
		until(fmt.Sprint("heard ", int(syscall.SIGUSR1)))
		require.NoError(t, p.Stop(t.Context(), "enough", time.Minute))
		exit, ended := p.Exit()
		require.True(t, ended)
		require.Equal(t, procs.Exit{Code: 7, Reason: "enough"}, exit, name)
		r.Close()
	}
	data, err := os.ReadFile(filepath.Join(w.Folder(), "here"))
	require.NoError(t, err)
	require.Equal(t, "x", string(data), "it is the host's folder")
}
