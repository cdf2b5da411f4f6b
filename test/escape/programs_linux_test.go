package escape_test

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/environment"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/workspace"
	"github.com/coppice-run/coppice/workspace/procs"
)

// asks is a program that says what the system allows it.
const asks = `import json, os, socket
def may(act):
    try: act(); return True
    except OSError: return False
state = dict(line.split(':', 1) for line in open('/proc/self/status'))
print(json.dumps({
    'rights': int(state['CapEff'], 16) | int(state['CapPrm'], 16) | int(state['CapInh'], 16) | int(state.get('CapAmb', '0'), 16),
    'filter': int(state.get('Seccomp', '0')), 'none new': int(state.get('NoNewPrivs', '0')),
    'become another user': may(lambda: os.setresuid(12345, 12345, 12345)), 'become a group': may(lambda: os.setgroups([12345])),
    'signal the host': may(lambda: os.kill(int(os.environ['HOST']), 0)),
    'use the network': may(lambda: socket.socket(socket.AF_INET)),
    'write outside': may(lambda: open('/var/tmp/coppice-escape', 'w')),
    'write in its folder': may(lambda: open('here', 'w')),
}))`

// TestProgramsOfAWorkspace: a program that is started in a workspace, and not forked from
// a session, stands behind the walls of the rung, and has none of the rights with which
// the fork server there makes sessions other users.
func TestProgramsOfAWorkspace(t *testing.T) {
	all := []coppice.Isolation{{Level: kernel.IsolationBubblewrap, Users: true}}
	for _, rung := range rungs[position(kernel.IsolationSeccomp):position(kernel.IsolationGVisor)] {
		all = append(all, coppice.Isolation{Level: rung})
	}
	for _, i := range all {
		if why := lacksAny(i); why != nil {
			t.Logf("RUNG %s as uid %d: not here: %v", called(i), os.Geteuid(), why)
			continue
		}
		t.Run(called(i), func(t *testing.T) { //nolint:paralleltest // as the other tables
			h := host(t, python(t), i.Level, shared(t), func(o *coppice.Options) { o.Home, o.Isolation.Users = shared(t), i.Users })
			w, err := h.Workspace(t.Context(), "w", workspace.Options{})
			require.NoError(t, err)
			for name, terminal := range map[string]*procs.Size{"pipes": nil, "terminal": {}} {
				p, err := w.Start(t.Context(), workspace.ProcessOptions{
					Args: []string{python(t), "-c", asks}, Env: map[string]string{"HOST": pid()}, Terminal: terminal,
				})
				require.NoError(t, err)
				said := printed(t, p)
				var may map[string]any
				require.NoError(t, json.Unmarshal([]byte(said), &may), "%s: %s", name, said)
				require.Equal(t, map[string]any{
					"rights": 0.0, "filter": 2.0, "none new": 1.0, "become another user": false, "become a group": false,
					"signal the host": false, "use the network": false, "write outside": false, "write in its folder": true,
				}, may, name)
			}
		})
	}
}

// lacksAny says why an isolation cannot be had here.
func lacksAny(i coppice.Isolation) error {
	why := environment.LacksRung(i.Level)
	if why == nil && i.Users {
		why = environment.LacksRung(kernel.IsolationUser)
	}
	return why
}

// called is the name of an isolation's rung, and what it has besides.
func called(i coppice.Isolation) string {
	if i.Users {
		return i.Level + " with users"
	}
	return i.Level
}

// withUsers are the isolations on which sessions have users of their own.
var withUsers = []coppice.Isolation{{Level: kernel.IsolationUser}, {Level: kernel.IsolationBubblewrap, Users: true}}

// TestProgramsHaveAUser: where sessions have users of their own, the programs of a workspace have
// one of theirs. It reaches nothing of the host's user, each can use what the others make in the
// folder, and nothing is left of it when the workspace ends.
func TestProgramsHaveAUser(t *testing.T) {
	for _, i := range withUsers {
		if why := lacksAny(i); why != nil {
			t.Logf("RUNG %s as uid %d: not here: %v", called(i), os.Geteuid(), why)
			continue
		}
		for name, backend := range map[string]coppice.Backend{"runner": coppice.Runner(coppice.RunnerOptions{Spares: -1}), "gateway": coppice.Gateway(coppice.GatewayOptions{WarmKernels: -1})} {
			if name == "gateway" && (lacks(t, kernel.IsolationUser) != nil || i.Users && !full) { // which is behind the same walls
				continue
			}
			t.Run(called(i)+" "+name, func(t *testing.T) { //nolint:paralleltest // as the other tables
				path, packages := python(t), []string(nil)
				if name == "gateway" {
					path, packages = kernelsOn(t, kernel.IsolationUser)
				}
				h := host(t, path, i.Level, shared(t), func(o *coppice.Options) {
					o.Home, o.Backend, o.Isolation.Users = shared(t), backend, i.Users
					o.Isolation.Read = packages
				})
				w, err := h.Workspace(t.Context(), "w", workspace.Options{})
				require.NoError(t, err)
				run := func(code string) string {
					p, err := w.Start(t.Context(), workspace.ProcessOptions{Args: []string{python(t), "-c", "import os, socket, tempfile\n" + code}})
					require.NoError(t, err)
					return strings.TrimSpace(printed(t, p))
				}
				secret := filepath.Join("/dev/shm", "coppice-"+rand.Text())
				require.NoError(t, os.WriteFile(secret, []byte("secret"), 0o600))
				t.Cleanup(func() { require.NoError(t, os.Remove(secret)) })
				dir := shared(t)
				l, err := net.Listen("unix", filepath.Join(dir, "s"))
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, l.Close()) })
				require.Contains(t, run(fmt.Sprintf("open(%q)", secret)), "Error: [Errno")
				require.Contains(t, run(fmt.Sprintf("socket.socket(socket.AF_UNIX).connect(%q)", l.Addr())), "Error: [Errno")

				uid := run("open('made', 'w').write('by a program'); os.mkdir('folder'); print(os.getuid(), os.stat(tempfile.gettempdir()).st_uid == os.getuid(), os.environ['HOME'] == tempfile.gettempdir())")
				uid, rest, _ := strings.Cut(uid, " ")
				require.Equal(t, "True True", rest)
				require.NotEqual(t, "0", uid)
				require.Equal(t, uid, run("print(os.getuid(), file=open('/dev/stdout', 'w'))"), "one user for all programs, who may open their output anew")
				s := h.Session("s", coppice.InWorkspace("w"))
				r := call(t, s, "import os\nopen('folder/of a session', 'w').write('by a session')\nopen('made', 'a').write(', and a session')\nprint(os.getuid())")
				require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)
				require.NotEqual(t, uid, strings.TrimSpace(r.Text))
				require.Equal(t, "by a program, and a session by a session", run("print(open('made').read(), open('folder/of a session').read()); os.remove('folder/of a session'); os.rmdir('folder')"))

				run("import subprocess; subprocess.Popen(['sleep', '1000'], stdout=-3, stderr=-3, start_new_session=True)")
				require.NoError(t, w.End(t.Context()))
				number, err := strconv.Atoi(uid)
				require.NoError(t, err)
				_, err = syscall.Getpriority(syscall.PRIO_USER, number)
				require.ErrorIs(t, err, syscall.ESRCH, "nothing runs as the user of the programs")
			})
		}
	}
}

// asProgram has the code of a session run as a program.
const asProgram = "import json, sys\ndef display(d, raw): print(json.dumps(d['application/json']), flush=True)\n"

// programsShare is what programs of two workspaces share besides what sessions do, where they
// are all of the host's user, without any rights of it.
var programsShare = map[string]map[string]string{
	kernel.IsolationBubblewrap: {
		"list the folders of all": "there is no other than its own",
		"list descriptors":        "the numbers alone: what they lead to cannot be read", "read a limit": "everyone may, of a process of the same user",
		"become the user": "it is the user already",
		"become root":     "it is root already, which is worth nothing without rights",
		"join the group":  "it is in the group already",
	},
}

// TestProgramsOfNeighbours has a program of one workspace attack one of another.
func TestProgramsOfNeighbours(t *testing.T) {
	for _, i := range append([]coppice.Isolation{{Level: kernel.IsolationBubblewrap}}, withUsers...) {
		if why := lacksAny(i); why != nil {
			t.Logf("RUNG %s as uid %d: not here: %v", called(i), os.Geteuid(), why)
			continue
		}
		rung := called(i)
		t.Run(rung, func(t *testing.T) { //nolint:paralleltest // as the other tables
			h := host(t, python(t), i.Level, shared(t), func(o *coppice.Options) { o.Home, o.Isolation.Users = shared(t), i.Users })
			begin := func(name, code string) *workspace.Process {
				w, err := h.Workspace(t.Context(), name, workspace.Options{})
				require.NoError(t, err)
				p, err := w.Start(t.Context(), workspace.ProcessOptions{Args: []string{python(t), "-c", asProgram + code}, Env: map[string]string{"HOME": w.Folder()}})
				require.NoError(t, err)
				return p
			}
			at := begin("victim", atHome+"\nimport time; time.sleep(600)")
			r, err := at.Read(0)
			require.NoError(t, err)
			said := ""
			for !strings.HasSuffix(said, "}\n") {
				entries, err := r.Next(t.Context())
				require.NoError(t, err, said)
				for _, entry := range entries {
					e, err := entry.Event()
					require.NoError(t, err)
					said += string(e.Data)
				}
			}
			r.Close()
			victim, err := json.Marshal(strings.TrimSpace(said))
			require.NoError(t, err)
			var told [][3]any
			answer := printed(t, begin("attacker", "victim, apart = "+string(victim)+", True\n"+attack))
			require.NoError(t, json.Unmarshal([]byte(answer), &told), answer)
			refused := 0
			for _, a := range told {
				_, known := shares[a[0].(string)]
				_, more := programsShare[rung][a[0].(string)]
				if a[1].(bool) != (known || more) {
					t.Errorf("%s: succeeded %v: %v", a[0], a[1], a[2])
				}
				if !a[1].(bool) {
					refused++
				}
			}
			t.Logf("RUNG %s: %d of %d attempts of a program of a workspace on one of another refused", rung, refused, len(told))
			_, ended := at.Exit()
			require.False(t, ended)
		})
	}
}

func pid() string { return fmt.Sprint(os.Getpid()) }

// printed returns all that a process prints.
func printed(t *testing.T, p *workspace.Process) string {
	t.Helper()
	r, err := p.Read(0)
	require.NoError(t, err)
	defer r.Close()
	said := ""
	for {
		entries, err := r.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return said
		}
		require.NoError(t, err)
		for _, entry := range entries {
			e, err := entry.Event()
			require.NoError(t, err)
			said += string(e.Data)
		}
	}
}
