package escape_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/environment"
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
	for _, rung := range rungs[position(kernel.IsolationSeccomp):position(kernel.IsolationGVisor)] {
		if why := environment.LacksRung(rung); why != nil {
			t.Logf("RUNG %s as uid %d: not here: %v", rung, os.Geteuid(), why)
			continue
		}
		t.Run(rung, func(t *testing.T) { //nolint:paralleltest // as the other tables
			h := host(t, python(t), rung, shared(t), func(o *coppice.Options) { o.Home = shared(t) })
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

// asProgram has the code of a session run as a program.
const asProgram = "import json, sys\ndef display(d, raw): print(json.dumps(d['application/json']), flush=True)\n"

// programsShare is what programs of two workspaces share besides what sessions do: they
// are all of the host's user, without any rights of it.
var programsShare = map[string]map[string]string{
	kernel.IsolationUser: {
		"enter a folder": "Landlock does not keep from a folder, but from what is in it", "look at a file": "and not from the size and the times of a file",
		"connect to a socket with a path": "Landlock knows no sockets with paths yet",
		"read shared memory":              "/dev/shm is that of the machine, and of one user", "write shared memory": "as said", "remove shared memory": "as said",
		"list descriptors": "the numbers alone: what they lead to cannot be read", "read a limit": "everyone may, of a process of the same user",
		"become the user": "it is the user already",
		"become root":     "it is root already, which is worth nothing without rights",
		"join the group":  "it is in the group already",
	},
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
	for _, rung := range []string{kernel.IsolationUser, kernel.IsolationBubblewrap} {
		if why := environment.LacksRung(rung); why != nil {
			t.Logf("RUNG %s as uid %d: not here: %v", rung, os.Geteuid(), why)
			continue
		}
		t.Run(rung, func(t *testing.T) { //nolint:paralleltest // as the other tables
			h := host(t, python(t), rung, shared(t), func(o *coppice.Options) { o.Home = shared(t) })
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
