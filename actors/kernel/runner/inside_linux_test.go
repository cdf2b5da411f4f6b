package runner_test

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/actors/kernel/runner"
	"github.com/coppice-run/coppice/messages"
)

// standIn takes the place of runsc: it starts what a sandbox is described to start, with what
// that is to have, and makes no sandbox. So what goes over the border is tried where there
// is no gVisor.
const standIn = `
import json, os, sys
with open(os.path.join(sys.argv[sys.argv.index("-bundle") + 1], "config.json")) as f:
    process = json.load(f)["process"]
os.chdir(process["cwd"])
os.execve(process["args"][0], process["args"], dict(one.split("=", 1) for one in process["env"] or []))
`

// begun is how a program begins that is Python's, whatever that is: the interpreter of a script
// may be no script itself, and shims are.
func begun() string {
	return "#!/bin/sh\n'''exec' '" + cmp.Or(python(), "python3") + "' \"$0\" \"$@\"\n' '''\n"
}

// TestSessionsInside: what a fork server has as its standard descriptors is enough for sessions,
// whose processes have no numbers outside.
func TestSessionsInside(t *testing.T) {
	bin := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "runsc"), []byte(begun()+standIn), 0o700)) //nolint:gosec // it is run
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	f := startServer(runner.ServerOptions{
		Isolation: kernel.Isolation{Level: kernel.IsolationGVisor, Write: []string{t.TempDir()}},
		Limits:    kernel.Limits{Files: 50},
	})
	defer func() {
		require.NoError(t, f.stop())
		require.NoError(t, f.server.Close())
	}()
	one, two := sessionOn(t, f, runner.Options{}, kernel.StartOptions{}), sessionOn(t, f, runner.Options{}, kernel.StartOptions{})
	require.Zero(t, one.Info().PID)
	require.NotEqual(t, one.Info().ID, two.Info().ID)
	require.Equal(t, "o\n[e\n]c\n=> True", ok(t, one, "import os, sys\nprint('o')\nprint('e', file=sys.stderr)\nos.system('echo c')\n'coppice-sessions' in os.environ['TMPDIR']").text())
	require.Equal(t, "=> b''", ok(t, one, "os.read(0, 9)").text(), "the socket of the server is not its input")
	require.NoError(t, one.Ping(t.Context()))
	seen, err := one.Look()
	require.NoError(t, err)
	require.Zero(t, seen, "it is not known")
	controllers, why, err := f.server.Groups(t.Context())
	require.NoError(t, err)
	require.Empty(t, controllers)
	require.Contains(t, why, "share a sandbox")
	var refused *messages.ForkRefused
	require.ErrorAs(t, one.Copy(t.Context(), []string{"copy"}), &refused)
	require.Equal(t, messages.ForkUnsupported, refused.Reason)
	require.Equal(t, "=> 2", ok(t, one, "1 + 1").text(), "it was not touched")

	ended := run(t, two, "import os\nprint('last words', flush=True)\nos._exit(3)")
	lost, is := errors.AsType[*kernel.LostError](ended.err)
	require.True(t, is, "%v", ended.err)
	require.Equal(t, "the Python process exited with code 3", lost.Reason)
	require.Zero(t, lost.PID)
	require.Equal(t, "last words\n", ended.text())
}

// TestWhatSessionsInsideCannotHave is refused before anything is started.
func TestWhatSessionsInsideCannotHave(t *testing.T) {
	bin := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "runsc"), []byte(begun()+standIn), 0o700)) //nolint:gosec // it is run
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	inside := kernel.Isolation{Level: kernel.IsolationGVisor}
	for text, tc := range map[string]struct {
		o runner.HostOptions
		s kernel.Site
	}{
		"leave NoFork out":               {runner.HostOptions{NoFork: true}, kernel.Site{Isolation: inside}},
		"a limit of processors":          {runner.HostOptions{}, kernel.Site{Isolation: inside, Limits: kernel.Limits{Processors: 1}}},
		"the walls around sessions":      {runner.HostOptions{}, kernel.Site{Isolation: inside, Keep: true}},
		"a user for each session is had": {runner.HostOptions{}, kernel.Site{Isolation: kernel.Isolation{Level: kernel.IsolationGVisor, Users: true}}},
	} {
		_, err := runner.Provision(tc.o).Provision(tc.s)
		require.ErrorContains(t, err, text)
	}
}
