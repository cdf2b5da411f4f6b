package escape_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/environment"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/testpython"
	"github.com/coppice-run/coppice/workspace"
)

// ofGateways are the rungs that kernels of a gateway can have.
var ofGateways = []string{kernel.IsolationOff, kernel.IsolationPrivileges, kernel.IsolationLandlock, kernel.IsolationSeccomp, kernel.IsolationUser, kernel.IsolationBubblewrap, kernel.IsolationGVisor}

// gatewayHost starts one whose kernels are those of a real gateway, on a rung.
func gatewayHost(t *testing.T, rung, dir string, o coppice.GatewayOptions) *coppice.Host {
	t.Helper()
	return behind(t, rung, dir, func(all *coppice.Options) { all.Backend = coppice.Gateway(o) })
}

// behind starts a host of kernels on a rung, where they may read what they are made of.
func behind(t *testing.T, rung, dir string, change func(*coppice.Options)) *coppice.Host {
	t.Helper()
	path, packages := kernelsOn(t, rung)
	return host(t, path, rung, dir, func(o *coppice.Options) {
		o.Isolation.Read = append(o.Isolation.Read, packages...)
		change(o)
	})
}

// full says that the long form of a test is wanted.
var full = os.Getenv("COPPICE_TEST_FULL") != ""

// packagesVariable says where the packages of the interpreter of the tests are, when it has them
// from elsewhere.
const packagesVariable = "COPPICE_ESCAPE_PACKAGES"

// kernelsOn returns an interpreter for the kernels on a rung, and what they may read besides.
func kernelsOn(t testing.TB, rung string) (path string, packages []string) {
	t.Helper()
	if rung == kernel.IsolationUser {
		return forAll(t)
	}
	return testpython.Path(t), filepath.SplitList(os.Getenv(packagesVariable))
}

// lacks says why kernels cannot be on a rung here: where they have a user of their own, an
// interpreter that all users can reach has to be of the version of the tests'.
func lacks(t testing.TB, rung string) error {
	t.Helper()
	if err := environment.LacksRung(rung); err != nil || rung != kernel.IsolationUser {
		return err
	}
	version, _ := about(t, testpython.Path(t))
	if has, _ := about(t, python(t)); has != version {
		return fmt.Errorf("the interpreter that all users can reach is %s, and that of the tests %s", has, version)
	}
	return nil
}

// about asks an interpreter for its version, and where its packages are.
func about(t testing.TB, python string) (version, packages string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), python, "-c", "import sys, sysconfig; print(*sys.version_info[:2]); print(sysconfig.get_path('purelib'))").Output() //nolint:gosec // an interpreter
	require.NoError(t, err)
	version, packages, _ = strings.Cut(strings.TrimSpace(string(out)), "\n")
	return version, packages
}

// forAll makes an interpreter that all users can reach, with the packages of that of the
// tests, which they may read.
func forAll(t testing.TB) (path string, packages []string) {
	t.Helper()
	all := python(t)
	_, from := about(t, testpython.Path(t))
	env := filepath.Join(shared(t), "env")
	require.NoError(t, exec.CommandContext(t.Context(), all, "-m", "venv", "--without-pip", env).Run()) //nolint:gosec // an interpreter
	path = filepath.Join(env, "bin", "python")
	_, own := about(t, path)
	require.NoError(t, os.WriteFile(filepath.Join(own, "tests.pth"), []byte(from+"\n"), 0o644)) //nolint:gosec // all read it
	return path, []string{from}
}

// TestEscapesOfKernels tries everything from a kernel of a gateway, forked and spawned: what
// the table says holds for it as for a session of the runner backend.
func TestEscapesOfKernels(t *testing.T) {
	free := map[string]bool{}
	for _, rung := range ofGateways {
		for _, noFork := range []bool{false, true} {
			name := fmt.Sprintf("%s/fork=%v", rung, !noFork)
			if noFork && rung != kernel.IsolationOff && rung != kernel.IsolationSeccomp && !full { // a kernel that is spawned stands behind the walls of its gateway, too
				continue
			}
			if why := lacks(t, rung); why != nil {
				t.Logf("RUNG gateway %-20s as uid %d: not here: %v", name, os.Geteuid(), why)
				continue
			}
			t.Run(name, func(t *testing.T) { //nolint:paralleltest // the first is what the others are compared with
				dir := shared(t)
				h := gatewayHost(t, rung, dir, coppice.GatewayOptions{NoFork: noFork, WarmKernels: -1})
				level, about := h.Isolation()
				require.Equal(t, rung, level, about)
				s := h.Session("escape", coppice.In(dir))
				escapes, err := environment.TryToEscape(t.Context(), h.Dir(), func(ctx context.Context, code string) (environment.Escaped, error) {
					r, err := s.Execute(ctx, coppice.Request{Cells: []messages.Cell{{Code: code}}})
					require.NoError(t, err)
					require.Len(t, r.JSON, 1, r.Text)
					return environment.Escaped{JSON: r.JSON[0], Level: level}, nil
				})
				require.NoError(t, err)
				judge(t, rung, "gateway "+name, escapes, free)
			})
		}
	}
}

// TestEscapesOfKernelsOfAnOrdinaryUser runs the table of kernels as a user that is not root, when
// this is root, with an interpreter that this user can reach.
func TestEscapesOfKernelsOfAnOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("this is an ordinary user")
		return
	}
	if why := lacks(t, kernel.IsolationUser); why != nil {
		t.Logf("not tried: %v", why)
		return
	}
	path, packages := forAll(t)
	which := "/(off|seccomp)/fork=true" // of names that have as many parts
	if full {
		which = ""
	}
	out := asNobody(t, "^(TestEscapesOfKernels|TestKernelsBehindWalls|TestNeighboursOfOneUser|TestWorkspacesApartByKernels)$"+which,
		"COPPICE_TEST_PYTHON="+path, packagesVariable+"="+strings.Join(packages, string(filepath.ListSeparator)))
	require.Contains(t, out, "--- PASS: TestEscapesOfKernels/seccomp/fork=true")
	require.Contains(t, out, "--- PASS: TestKernelsBehindWalls/seccomp")
	require.Contains(t, out, "--- PASS: TestNeighboursOfOneUser/seccomp_gateway")
}

// TestKernelsBehindWalls: what a kernel needs works behind them, and it does nothing to its
// siblings and its gateway, but where they share a kernel of their own.
func TestKernelsBehindWalls(t *testing.T) {
	for _, rung := range []string{kernel.IsolationSeccomp, kernel.IsolationUser, kernel.IsolationBubblewrap, kernel.IsolationGVisor} {
		if why := lacks(t, rung); why != nil {
			t.Logf("RUNG %s as uid %d: not here: %v", rung, os.Geteuid(), why)
			continue
		}
		t.Run(rung, func(t *testing.T) { kernelsBehindWalls(t, rung) })
	}
}

func kernelsBehindWalls(t *testing.T, rung string) {
	t.Helper()
	dir := shared(t)
	h := behind(t, rung, dir, func(o *coppice.Options) {
		o.Backend = coppice.Gateway(coppice.GatewayOptions{Shared: true, WarmKernels: -1}) // which it has one of its own in place of
		o.HostCalls = coppice.HostCallOptions{Functions: []coppice.HostFunction{
			coppice.Function("twice", "", func(_ context.Context, p struct{ X int }) (int, error) { return 2 * p.X, nil }),
		}}
	})
	cell := func(session, code string) string {
		t.Helper()
		r, err := h.Session(session, coppice.In(dir)).Execute(t.Context(), coppice.Request{Cells: []messages.Cell{{Code: code}}})
		require.NoError(t, err)
		require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)
		return strings.TrimSpace(r.Text)
	}
	require.Equal(t, "x 4 walled", cell("a", `import os, subprocess, tempfile, sqlite3, asyncio
open('mine', 'w').write('x')
os.chmod('mine', 0o640)
with tempfile.TemporaryFile() as f: f.write(b'x')
await asyncio.sleep(0)
print(subprocess.run(['cat', 'mine'], check=True, capture_output=True, text=True).stdout, tool.twice(x=2), 'walled')`))
	sibling := cell("a", "print(os.getpid())")
	want := "refused refused refused refused"
	if rung == kernel.IsolationGVisor { // kernels of one sandbox are not kept from one another
		want = "done done done done"
	}
	require.Equal(t, want, cell("b", `import os
def refused(act):
    try: act()
    except PermissionError: return 'refused'
    return 'done'
print(refused(lambda: os.kill(`+sibling+`, 0)), refused(lambda: os.kill(os.getppid(), 0)),
    refused(lambda: open('/proc/%d/environ' % os.getppid()).read()), refused(lambda: open('/proc/`+sibling+`/environ').read()))`))

	// They are interrupted, and what dies is told and made again.
	s := h.Session("d", coppice.In(dir))
	r, err := s.Execute(t.Context(), coppice.Request{Timeout: time.Second, Cells: []messages.Cell{{Code: "x = 1\nwhile True: pass"}}})
	require.NoError(t, err)
	require.Equal(t, messages.OutcomeTimeout, r.Outcome, r.Text)
	require.Equal(t, "1", cell("d", "print(x)"))
	r, err = s.Execute(t.Context(), coppice.Request{Cells: []messages.Cell{{Code: "import os\nos.kill(os.getpid(), 9)"}}})
	require.Equal(t, messages.OutcomeLost, r.Outcome, "%s %v", r.Text, err)
	require.Contains(t, cell("d", "print('x' in globals() or 'new')"), "new")

	closed := t.TempDir()
	_, err = h.Session("c", coppice.In(closed)).Execute(t.Context(), coppice.Request{Cells: []messages.Cell{{Code: "1"}}})
	require.ErrorContains(t, err, "the isolation keeps sessions out of "+closed)

	w, err := h.Workspace(t.Context(), "w", workspace.Options{})
	require.NoError(t, err)
	require.Equal(t, rung, w.Info().Isolation)
	program := testpython.Path(t)
	if rung == kernel.IsolationUser { // whose programs are another user's
		program = python(t)
	}
	p, err := w.Start(t.Context(), workspace.ProcessOptions{Args: []string{program, "-c", asks}, Env: map[string]string{"HOST": pid()}})
	require.NoError(t, err)
	may := `{"rights": 0, "filter": 2, "none new": 1, "become another user": false, "become a group": false,
		"signal the host": false, "use the network": false, "write outside": false, "write in its folder": true}`
	if rung == kernel.IsolationGVisor { // whose network is its own
		may = strings.NewReplacer(`"filter": 2`, `"filter": 0`, `"none new": 1`, `"none new": 0`, `network": false`, `network": true`).Replace(may)
	}
	require.JSONEq(t, may, printed(t, p))
}

// TestNeighboursOfGateways has a kernel of a workspace attack one of another workspace, whose
// gateway is another.
func TestNeighboursOfGateways(t *testing.T) {
	for _, rung := range []string{kernel.IsolationUser, kernel.IsolationBubblewrap} {
		if why := errors.Join(lacks(t, kernel.IsolationUser), lacks(t, rung)); why != nil {
			t.Logf("RUNG gateway %s as uid %d: not here: %v", rung, os.Geteuid(), why)
			continue
		}
		t.Run(rung, func(t *testing.T) { //nolint:paralleltest // as the other tables
			path, packages := kernelsOn(t, kernel.IsolationUser)
			h := host(t, path, rung, shared(t), func(o *coppice.Options) {
				o.Backend, o.Home = coppice.Gateway(coppice.GatewayOptions{WarmKernels: -1}), shared(t)
				o.Isolation.Read, o.Isolation.Users = packages, true
			})
			for _, name := range []string{"victim", "attacker"} {
				_, err := h.Workspace(t.Context(), name, workspace.Options{})
				require.NoError(t, err)
			}
			duel(t, "workspace", shares, h.Session("s", coppice.InWorkspace("victim")), h.Session("s", coppice.InWorkspace("attacker")))
		})
	}
}

// TestRungsThatKernelsCannotHave are refused, and the error names the next step.
func TestRungsThatKernelsCannotHave(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, rung string
		o          coppice.GatewayOptions
		says       string
	}{
		{"elsewhere", kernel.IsolationLandlock, coppice.GatewayOptions{URL: "http://127.0.0.1:9"}, "kernels of a server that somebody else runs cannot be isolated (landlock was asked for); use the runner backend"},
		{"kept", kernel.IsolationLandlock, coppice.GatewayOptions{Shared: true, KeepSessions: true}, "KeepSessions: the walls around kernels (isolation landlock) end with their host"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := coppice.Start(t.Context(), coppice.Options{
				Backend: coppice.Gateway(c.o), Home: t.TempDir(), Python: testpython.Path(t), Isolation: coppice.Isolation{Level: c.rung, Write: []string{t.TempDir()}},
			})
			require.ErrorIs(t, err, coppice.ErrOptions)
			require.ErrorContains(t, err, c.says)
		})
	}
}
