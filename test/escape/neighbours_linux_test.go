package escape_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/environment"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/testpython"
	"github.com/coppice-run/coppice/workspace"
)

// atHome is the session that the other one attacks: it has all that can be attacked.
const atHome = `import ctypes, os, resource, socket, subprocess, tempfile
from multiprocessing import shared_memory
home = os.environ['HOME']
open(home + '/secret', 'w').write('secret')
with tempfile.NamedTemporaryFile(delete=False) as f: f.write(b'secret')
os.mkdir(home + '/folder')
memory = shared_memory.SharedMemory(create=True, size=64); memory.buf[0] = 9
path = socket.socket(socket.AF_UNIX); path.bind(home + '/s'); path.listen()
abstract = socket.socket(socket.AF_UNIX); abstract.bind('\0coppice-%d' % os.getpid()); abstract.listen()
sleeper = subprocess.Popen(['sleep', '1000'])
word = ctypes.create_string_buffer(b'secret')
ctypes.CDLL(None).shmget(0x4711, 4096, 0o1600)
open('left', 'w').write('x'); os.chmod('left', 0o600)
display({'application/json': {'pid': os.getpid(), 'child': sleeper.pid, 'home': home, 'temp': f.name, 'shm': memory.name, 'at': ctypes.addressof(word), 'uid': os.getuid(), 'parent': os.getppid(), 'cwd': os.getcwd()}}, raw=True)`

// attack is forty attempts of a session on another, and what they share.
const attack = `import ctypes, fcntl, json, os, resource, signal, socket, subprocess, sys
v = json.loads(victim)
libc = ctypes.CDLL(None, use_errno=True); libc.syscall.restype = ctypes.c_long
told = []
def attempt(name, act):
    try: told.append([name, True, str(act())])
    except Exception as err: told.append([name, False, '%s: %s' % (type(err).__name__, err)])
def call(*args):
    got = libc.syscall(*[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
    if got < 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return got
def connect(address):
    with socket.socket(socket.AF_UNIX) as s: s.connect(address)
def become(): os.setuid(v['uid'])
def run(*args):
    if subprocess.run(args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode: raise PermissionError('it could not')
def vm(write):
    buf = ctypes.create_string_buffer(6); local = (ctypes.c_size_t * 2)(ctypes.addressof(buf), 6); remote = (ctypes.c_size_t * 2)(v['at'], 6)
    return call(311 if write else 310, v['pid'], local, 1, remote, 1, 0)
def attach(got):
    if got < 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
def take():
    fd = os.pidfd_open(v['pid']); return call(438, fd, 0, 0)
h, p, c = v['home'], v['pid'], v['child']
for name, act in {
    'read a file': lambda: open(h + '/secret').read(),
    'write a file': lambda: open(h + '/secret', 'a'),
    'make a file': lambda: open(h + '/new', 'x'),
    'list a folder': lambda: os.listdir(h),
    'enter a folder': lambda: os.chdir(h),
    'look at a file': lambda: os.stat(h + '/secret'),
    'remove a file': lambda: os.remove(h + '/secret'),
    'remove a folder': lambda: os.rmdir(h + '/folder'),
    'rename a folder': lambda: os.rename(h, h + 'x'),
    'link a file': lambda: os.link(h + '/secret', os.environ['HOME'] + '/link'),
    'open the folder to all': lambda: os.chmod(h, 0o777),
    'take the folder': lambda: os.chown(h, os.getuid(), os.getgid()),
    'read a temporary file': lambda: open(v['temp']).read(),
    'list the folders of all': lambda: os.listdir(os.path.dirname(h)),
    'read a private file in the shared folder': lambda: open(v['cwd'] + '/left').read(),
    'chmod a file in the shared folder': lambda: os.chmod(v['cwd'] + '/left', 0o666),
    'read by a program': lambda: run('cat', h + '/secret'),
    'read through /proc/root': lambda: open('/proc/%d/root%s/secret' % (p, h)).read(),
    'read through /proc/cwd': lambda: os.listdir('/proc/%d/cwd/' % p),
    'read the environment': lambda: open('/proc/%d/environ' % p, 'rb').read(),
    'read the environment of a child': lambda: open('/proc/%d/environ' % c, 'rb').read(),
    'read the maps': lambda: open('/proc/%d/maps' % p).read() or 1 / 0,
    'open the memory': lambda: open('/proc/%d/mem' % p, 'rb'),
    'write the memory': lambda: open('/proc/%d/mem' % p, 'r+b'),
    'list descriptors': lambda: os.listdir('/proc/%d/fd' % p),
    'spare it from the killer of memory': lambda: open('/proc/%d/oom_score_adj' % p, 'w').write('1000'),
    'read memory': lambda: vm(False),
    'write memory': lambda: vm(True),
    'trace': lambda: call(101, 0x4206, p, 0, 0),
    'trace a child': lambda: call(101, 0x4206, c, 0, 0),
    'take a descriptor': take,
    'signal': lambda: os.kill(p, 0),
    'signal a child': lambda: os.kill(c, signal.SIGSTOP),
    'signal the group': lambda: os.killpg(p, 0),
    'signal by a pidfd': lambda: signal.pidfd_send_signal(os.pidfd_open(p), 0),
    'signal all of them': lambda: run('kill', '-0', str(p)),
    'have the kernel signal it': lambda: fcntl.fcntl(os.pipe()[0], 8, p),
    'signal the fork server': lambda: os.kill(v['parent'], 0),
    'read shared memory': lambda: open('/dev/shm/' + v['shm'], 'rb').read(),
    'write shared memory': lambda: open('/dev/shm/' + v['shm'], 'r+b'),
    'remove shared memory': lambda: os.remove('/dev/shm/' + v['shm']),
    'connect to a socket with a path': lambda: connect(h + '/s'),
    'connect to an abstract socket': lambda: connect('\0coppice-%d' % p),
    'set a limit': lambda: resource.prlimit(p, resource.RLIMIT_CPU, (1, 1)),
    'read a limit': lambda: resource.prlimit(p, resource.RLIMIT_CPU),
    'slow it down': lambda: os.setpriority(os.PRIO_PROCESS, p, 19),
    'slow all of the user down': lambda: os.setpriority(os.PRIO_USER, v['uid'], 19),
    'move it to one processor': lambda: os.sched_setaffinity(p, {0}),
    'open a port': lambda: socket.socket(socket.AF_INET).bind(('127.0.0.1', 0)),
    'send to a port': lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9)),
    'attach memory of System V': lambda: attach(libc.shmget(0x4711, 0, 0)),
    'become the user': become,
    'become root': lambda: os.setuid(0),
    'join the group': lambda: os.setgid(v['uid']),
    'read the command line': lambda: open('/proc/%d/cmdline' % c).read(),
}.items(): attempt(name, act)
if apart:
    for name, act in {
        'list its folder': lambda: os.listdir(v['cwd']),
        'make a file in its folder': lambda: open(v['cwd'] + '/new', 'x'),
        'remove a file of its folder': lambda: os.remove(v['cwd'] + '/left'),
        'link its folder here': lambda: (os.symlink(v['cwd'], 'theirs'), os.listdir('theirs')),
        'go to its folder by a program': lambda: run('ls', v['cwd']),
        'read its folder through /proc': lambda: os.listdir('/proc/%d/root%s' % (p, v['cwd'])),
        'fill its folder': lambda: os.truncate(v['cwd'] + '/left', 1 << 30),
    }.items(): attempt(name, act)
display({'application/json': told}, raw=True)`

// shares is what sessions with users of their own share all the same.
var shares = map[string]string{
	"read the command line":     "every user of a machine sees the command lines of all",
	"have the kernel signal it": "a descriptor may name any process; the kernel then does not signal one that may not be",
}

// TestNeighbours has a session attack another of its host, and one of a workspace a session of
// another workspace, where each has a user of its own: none of the attempts succeeds but
// on what is said to be shared.
func TestNeighbours(t *testing.T) {
	for _, o := range []coppice.Isolation{
		{Level: kernel.IsolationUser},
		{Level: kernel.IsolationBubblewrap, Users: true},
	} {
		why := environment.LacksRung(o.Level)
		if why == nil {
			why = environment.LacksRung(kernel.IsolationUser)
		}
		if why != nil {
			t.Logf("RUNG %s as uid %d: not here: %v", o.Level, os.Geteuid(), why)
			continue
		}
		t.Run(o.Level, func(t *testing.T) { //nolint:paralleltest // as the other tables
			dir := shared(t)
			h := host(t, python(t), o.Level, dir, func(all *coppice.Options) { all.Isolation.Users = o.Users })
			duel(t, "session", shares, h.Session("victim", coppice.In(dir)), h.Session("attacker", coppice.In(dir)))
		})
		t.Run(o.Level+" of workspaces", func(t *testing.T) { //nolint:paralleltest // as the other tables
			h := host(t, python(t), o.Level, shared(t), func(all *coppice.Options) { all.Home, all.Isolation.Users = shared(t), o.Users })
			for _, name := range []string{"victim", "attacker"} {
				_, err := h.Workspace(t.Context(), name, workspace.Options{})
				require.NoError(t, err)
			}
			duel(t, "workspace", shares, h.Session("s", coppice.InWorkspace("victim")), h.Session("s", coppice.InWorkspace("attacker")))
		})
	}
}

// duel has one session attack another; of is what they are apart as, and share what they share.
func duel(t *testing.T, of string, share map[string]string, at, by *coppice.Session) {
	t.Helper()
	r := call(t, at, atHome)
	require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)
	require.Len(t, r.JSON, 1)
	victim, err := json.Marshal(string(r.JSON[0]))
	require.NoError(t, err)
	apart := "False"
	if of == "workspace" {
		apart = "True"
	}
	r = call(t, by, "victim, apart = "+string(victim)+", "+apart+"\n"+attack)
	require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)
	var told [][3]any
	require.Len(t, r.JSON, 1, r.Text)
	require.NoError(t, json.Unmarshal(r.JSON[0], &told))
	require.GreaterOrEqual(t, len(told), 40)
	refused := 0
	for _, a := range told {
		_, known := share[a[0].(string)]
		if a[1].(bool) != known {
			t.Errorf("%s: succeeded %v: %v", a[0], a[1], a[2])
		}
		if !a[1].(bool) {
			refused++
		}
	}
	t.Logf("RUNG %s: %d of %d attempts of a %s on another refused", t.Name(), refused, len(told), of)
	r = call(t, at, "(open(home + '/secret').read(), sleeper.poll(), memory.buf[0], word.value)")
	require.Equal(t, "('secret', None, 9, b'secret')", r.Text)
	require.Equal(t, messages.OutcomeOK, call(t, at, "sleeper.kill()\ntry: memory.unlink()\nexcept FileNotFoundError: pass").Outcome)
}

// ofOneUser is what sessions share on each rung that have the user of their host, and on those
// above it but for what is left out there.
var ofOneUser = []struct {
	until string // the highest rung on which it is shared
	what  map[string]string
}{
	{kernel.IsolationLandlock, map[string]string{
		"open the folder to all":            "Landlock knows nothing of permissions, owners and times",
		"take the folder":                   "as that",
		"chmod a file in the shared folder": "as that",
		"set a limit":                       "nor of limits, priorities and processors of the user's processes",
		"slow it down":                      "as that",
		"move it to one processor":          "as that",
		"send to a port":                    "nor of UDP, before ABI 10",
		"attach memory of System V":         "nor of memory of System V",
	}},
	{kernel.IsolationSeccomp, map[string]string{
		"enter a folder":                  "which tells whether it is there, and no more: it is not listed, and nothing in it is read",
		"look at a file":                  "its size and its times, and nothing of what is in it",
		"read shared memory":              "/dev/shm is one for all, but with Isolation.Private",
		"write shared memory":             "as that",
		"remove shared memory":            "as that",
		"connect to a socket with a path": "where it knows the path",
	}},
	{kernel.IsolationBubblewrap, map[string]string{
		"list descriptors":          "their numbers, and nothing of what they lead to",
		"have the kernel signal it": "a descriptor may name any process; the kernel then does not signal one that may not be",
		"read a limit":              "every process may read those of the user's others",
		"become the user":           "it is the user already",
		"become root":               "it is root already, without any of its rights",
		"join the group":            "it is in the group already",
		"read the command line":     "every user of a machine sees the command lines of all",
	}},
}

// sharedOn is what sessions of one user share on a rung.
func sharedOn(rung string) map[string]string {
	all := map[string]string{}
	for _, s := range ofOneUser {
		if position(rung) <= position(s.until) {
			maps.Copy(all, s.what)
		}
	}
	if rung == kernel.IsolationBubblewrap {
		all["list the folders of all"] = "there are none but those that it has itself"
	}
	if os.Geteuid() != 0 {
		delete(all, "become root")
		if rung == kernel.IsolationLandlock {
			all["slow all of the user down"] = "which root's session may not, since it has lost the right to"
		}
	}
	return all
}

// TestNeighboursOfOneUser has a session of a workspace attack one of another on the rungs where both
// have the user of their host, on both backends: what succeeds there is said, and nothing else does.
func TestNeighboursOfOneUser(t *testing.T) {
	backends := map[string]struct {
		python  string
		backend coppice.Backend
	}{
		"runner":  {python(t), coppice.Runner(coppice.RunnerOptions{Spares: -1})},
		"gateway": {testpython.Path(t), coppice.Gateway(coppice.GatewayOptions{WarmKernels: -1})},
	}
	for _, rung := range []string{kernel.IsolationLandlock, kernel.IsolationSeccomp, kernel.IsolationBubblewrap} {
		for _, name := range []string{"runner", "gateway"} {
			if name == "gateway" && rung == kernel.IsolationLandlock && !full { // less than seccomp, of which there are both
				continue
			}
			if why := environment.LacksRung(rung); why != nil {
				t.Logf("RUNG %s %s as uid %d: not here: %v", name, rung, os.Geteuid(), why)
				continue
			}
			t.Run(rung+" "+name, func(t *testing.T) { //nolint:paralleltest // as the other tables
				o := backends[name]
				h := host(t, o.python, rung, shared(t), func(all *coppice.Options) {
					all.Home, all.Backend = shared(t), o.backend
					all.Isolation.Read = filepath.SplitList(os.Getenv(packagesVariable))
				})
				for _, name := range []string{"victim", "attacker"} {
					folder := shared(t)
					_, err := h.Workspace(t.Context(), name, workspace.Options{Folder: folder, Env: map[string]string{"HOME": folder}})
					require.NoError(t, err)
				}
				duel(t, "workspace", sharedOn(rung), h.Session("s", coppice.InWorkspace("victim")), h.Session("s", coppice.InWorkspace("attacker")))
			})
		}
	}
}
