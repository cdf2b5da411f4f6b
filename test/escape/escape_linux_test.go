package escape_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/environment"
	"github.com/coppice-run/coppice/messages"
)

// rungs are those of the table, the lowest first, and for each why this machine and
// this user do not have it.
var rungs = []string{
	kernel.IsolationOff, kernel.IsolationPrivileges, kernel.IsolationLandlock, kernel.IsolationSeccomp, kernel.IsolationUser, kernel.IsolationBubblewrap, kernel.IsolationGVisor,
}

// host starts one on a rung, whose sessions may write in dir.
func host(t *testing.T, python, rung, dir string, more ...func(*coppice.Options)) *coppice.Host {
	t.Helper()
	o := coppice.Options{
		Backend: coppice.Runner(coppice.RunnerOptions{}), Home: t.TempDir(), Python: python,
		Isolation: coppice.Isolation{Level: rung, Write: []string{dir}},
	}
	for _, change := range more {
		change(&o)
	}
	h, err := coppice.Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.True(t, h.Shutdown(ctx).Clean())
	})
	return h
}

// rungOf names the rung of a row of the table, for this user.
func rungOf(w environment.Wall) string {
	if os.Geteuid() == 0 {
		return w.Root
	}
	return w.User
}

func position(rung string) int {
	for i, r := range rungs {
		if r == rung {
			return i
		}
	}
	return len(rungs)
}

// TestEscapes tries everything on every rung that this machine has, as the user that it
// runs as. A cell of the table is right when the attempt fails from its rung on, and
// below that does what it does on the rung that keeps nothing off: a table that promises
// too little is as wrong as one that promises too much.
func TestEscapes(t *testing.T) {
	free := map[string]bool{} // what succeeds where nothing stands against it
	tried := 0
	for _, rung := range rungs {
		for _, noFork := range []bool{false, true} {
			if noFork && rung == kernel.IsolationGVisor {
				continue // sessions of a sandbox are forked in it
			}
			name := fmt.Sprintf("%s/fork=%v", rung, !noFork)
			if why := environment.LacksRung(rung); why != nil {
				t.Logf("RUNG %-28s as uid %d: not here: %v", name, os.Geteuid(), why)
				continue
			}
			tried++
			t.Run(name, func(t *testing.T) { //nolint:paralleltest // the first is what the others are compared with
				escapes := attempts(t, rung, noFork)
				judge(t, rung, name, escapes, free)
			})
		}
	}
	require.GreaterOrEqual(t, tried, 4, "off and privileges at least, each in two ways")
	for _, w := range environment.Walls() {
		require.True(t, position(rungOf(w)) <= position(kernel.IsolationSeccomp) || w.Why != "", "%s: what only the highest rungs prevent is said", w.Attempt)
	}
}

// judge compares what was tried on a rung with the table. free is what succeeds where nothing
// stands against it, which the rung that keeps nothing off fills in.
func judge(t *testing.T, rung, name string, escapes []environment.Escape, free map[string]bool) {
	t.Helper()
	walls := environment.Walls()
	require.Len(t, escapes, len(walls))
	refused, let, own := 0, []string{}, []string{}
	for i, e := range escapes {
		w := walls[i]
		require.Equal(t, w.Attempt, e.Attempt)
		if rung == kernel.IsolationOff {
			free[e.Attempt] = !e.Prevented
		}
		require.Equal(t, w.Own && rung == kernel.IsolationGVisor, e.Own, e.Attempt)
		if e.Own { // see TestWhatASandboxOwns
			require.False(t, e.Promised, e.Attempt)
			own = append(own, e.Attempt)
			continue
		}
		want := e.Promised || !free[e.Attempt]
		if e.Prevented != want {
			t.Errorf("%s: prevented %v, in the table from %q on: %s", e.Attempt, e.Prevented, rungOf(w), e.Detail)
		}
		require.Equal(t, position(rung) >= position(rungOf(w)), e.Promised, e.Attempt)
		if e.Prevented {
			refused++
			continue
		}
		let = append(let, e.Attempt)
	}
	t.Logf("RUNG %-28s as uid %d: %d of %d attempts refused; allowed: %s; to a kernel of its own: %s", name, os.Geteuid(), refused, len(escapes), strings.Join(let, ", "), strings.Join(own, ", "))
}

func attempts(t *testing.T, rung string, noFork bool) []environment.Escape {
	t.Helper()
	dir := shared(t)
	h := host(t, python(t), rung, dir, func(o *coppice.Options) {
		o.Backend = coppice.Runner(coppice.RunnerOptions{NoFork: noFork})
	})
	escapes, err := environment.TryToEscape(t.Context(), h.Dir(), func(ctx context.Context, code string) (environment.Escaped, error) {
		r, err := h.Session("escape", coppice.In(dir)).Execute(ctx, coppice.Request{Cells: []messages.Cell{{Code: code}}})
		require.NoError(t, err)
		require.Len(t, r.JSON, 1, r.Text)
		level, _ := h.Isolation()
		return environment.Escaped{JSON: r.JSON[0], Level: level}, nil
	})
	require.NoError(t, err)
	return escapes
}

// shared returns a folder that any user can reach.
func shared(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "coppice-escape-") //nolint:usetesting // the parents of t.TempDir are this user's alone
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // as said
	return dir
}

// python returns an interpreter that other users can run.
func python(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("/usr/bin/python3")
	require.NoError(t, err, "the rung of users needs an interpreter that all users can reach")
	return path
}

// TestEscapesOfAnOrdinaryUser runs the table as a user that is not root, when this is
// root: for any other the table itself has done that.
func TestEscapesOfAnOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("this is an ordinary user")
		return
	}
	out := asNobody(t, "^(TestEscapes|TestWhatMustStillWork)$")
	require.Contains(t, out, "--- PASS: TestEscapes/seccomp/fork=true")
}

// asNobody runs tests of this package as a user that is nobody's, shows what they say of each
// rung, and returns all that they say.
func asNobody(t *testing.T, tests string, env ...string) string {
	t.Helper()
	dir := shared(t)
	const nobody = 65534
	home := filepath.Join(dir, "home")
	require.NoError(t, os.Mkdir(home, 0o700))
	require.NoError(t, os.Chown(home, nobody, nobody))
	data, err := os.ReadFile(os.Args[0])
	require.NoError(t, err)
	binary := filepath.Join(dir, "escape.test")
	require.NoError(t, os.WriteFile(binary, data, 0o755)) //nolint:gosec // that user runs it
	cmd := exec.CommandContext(t.Context(), binary, "-test.run="+tests, "-test.v")
	temp, err := os.MkdirTemp("/tmp", "e") //nolint:usetesting // short: the sockets of multiprocessing stand below it
	require.NoError(t, err)
	defer func() { require.NoError(t, os.RemoveAll(temp)) }()
	require.NoError(t, os.Chown(temp, nobody, nobody))
	cmd.Dir = home
	cmd.Env = slices.Concat(env, []string{"HOME=" + home, "TMPDIR=" + temp, "PATH=" + os.Getenv("PATH")}) // where the programs of the rungs may be
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}, Setpgid: true, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "RUNG") {
			t.Log(strings.TrimSpace(line))
		}
	}
	require.NoError(t, err, "%s", out)
	return string(out)
}
