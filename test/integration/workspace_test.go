//go:build linux

package integration_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/environment"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
	"github.com/coppice-run/coppice/test/proc"
	"github.com/coppice-run/coppice/workspace"
)

func TestSessionsOfWorkspaces(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, backend string) {
		host := on(t, backend)
		made, err := host.Workspace(t.Context(), "etl", workspace.Options{Env: map[string]string{"STAGE": "test"}, Owner: "ann"})
		require.NoError(t, err)
		inside := host.Session("a", coppice.InWorkspace("etl"))
		outside := host.Session("a", coppice.In(made.Folder()))
		require.NotEqual(t, inside.Key(), outside.Key())
		require.Contains(t, run(t, inside, cells("x = 1; import os; os.environ['STAGE'] + os.getcwd()")).Text, "'test"+made.Folder()+"'")
		require.Contains(t, run(t, outside, cells("import os; 'x' in globals(), os.environ.get('STAGE')")).Text, "(False, None)")
		require.Contains(t, run(t, host.Session("a", coppice.InWorkspace("etl")), cells("x")).Text, "1")
		live, err := host.Sessions(t.Context())
		require.NoError(t, err)
		for _, s := range live {
			if s.Key.Workspace == "etl" {
				require.Equal(t, "ann", s.Owner, "calls that name no owner have that of the workspace")
			}
		}

		// The end of the workspace ends a call that runs, and one that waits, and says so.
		results := make(chan messages.Result, 2)
		running := make(chan struct{})
		go func() {
			for e, err := range inside.Stream(t.Context(), cells("print('go', flush=True); import time; time.sleep(600)")) {
				if err != nil {
					return // the test ends without a result
				}
				switch e := e.(type) {
				case messages.Stream:
					close(running)
				case messages.Final:
					results <- e.Result
				}
			}
		}()
		<-running
		queued := make(chan struct{})
		go func() {
			r := cells("1")
			r.OnQueued = func() { close(queued) }
			result, _ := inside.Execute(t.Context(), r)
			results <- result
		}()
		<-queued
		require.NoError(t, made.End(t.Context()))
		for range 2 {
			r := <-results
			require.Contains(t, r.Reason, "the workspace etl has ended: it was asked to end", "%+v", r)
			require.Contains(t, []messages.Outcome{messages.OutcomeCancelled, messages.OutcomeNotStarted}, r.Outcome)
		}
		require.NoDirExists(t, made.Folder())
		late, err := inside.Execute(t.Context(), cells("1"))
		_, ended := errors.AsType[*workspace.EndedError](err)
		require.True(t, ended, "%v", err)
		require.Equal(t, messages.RefusedClosed, late.Refusal)
		require.Equal(t, messages.RemedyRequest, late.Remedy, "the same call would not be served")
		require.Contains(t, late.Text, "it was asked to end; make the workspace anew, or use another one.")
		require.Contains(t, run(t, outside, cells("x = 2; x")).Text, "2", "other sessions go on")
	})
}

func TestAWorkspaceWithLimitsAndAnEnvironmentOfItsOwn(t *testing.T) {
	t.Parallel()
	host := start(t, coppice.Options{Backend: coppice.Runner(coppice.RunnerOptions{}), Env: []string{"PI_SHARED=yes", "PI_HIDDEN=yes"}})
	made, err := host.Workspace(t.Context(), "small", workspace.Options{
		Limits: coppice.Limits{Memory: 256 << 20}, Pass: []string{"PI_SHARED"}, Isolation: coppice.Isolation{Level: "privileges"},
	})
	require.NoError(t, err)
	require.Equal(t, "privileges", made.Info().Isolation)
	inside := host.Session("a", coppice.InWorkspace("small"))
	require.Contains(t, run(t, inside, cells("import os; os.environ.get('PI_SHARED'), os.environ.get('PI_HIDDEN')")).Text, "('yes', None)")
	require.Contains(t, run(t, inside, cells("b = bytearray(1 << 30)")).Text, "MemoryError")
	outside := session(host, "a")
	require.Contains(t, run(t, outside, cells("b = bytearray(1 << 30); len(b), os.environ.get('PI_HIDDEN') if 'os' in globals() else 0")).Text, "1073741824")

	// Copies stay in the workspace, and come from its own fork server.
	run(t, inside, cells("y = 7"))
	copies, err := inside.Fork(t.Context(), coppice.ForkOptions{Copies: 2})
	require.NoError(t, err)
	for _, c := range copies {
		require.Equal(t, "small", c.Key().Workspace)
		require.Contains(t, run(t, c, cells("y, bytearray(1 << 30)")).Text, "MemoryError")
		require.Contains(t, run(t, c, cells("y")).Text, "7")
	}
	point, err := inside.Checkpoint(t.Context())
	require.NoError(t, err)
	run(t, inside, cells("y = 8"))
	require.NoError(t, inside.Rewind(t.Context(), point))
	require.Contains(t, run(t, inside, cells("y")).Text, "7")
	_, forked := errors.AsType[*messages.ForkRefused](outside.Rewind(t.Context(), point))
	require.True(t, forked || outside.Key().Cwd != inside.Key().Cwd)

	tree, err := host.Snapshot(t.Context())
	require.NoError(t, err)
	found := false
	for _, n := range tree.Children {
		for _, w := range n.Children {
			found = found || w.Name == "small" && w.Kind == workspace.Kind && slices.ContainsFunc(w.Children, func(n messages.Node) bool { return n.Kind == "server" })
		}
	}
	require.True(t, found, "the fork server stands below the workspace")
	require.NoError(t, host.ReleaseOwner(t.Context(), "no one"))
	require.NoError(t, made.End(t.Context()))
}

// TestAWorkspaceWithoutARungHasThatOfTheHost: what is asked for besides takes no wall down.
func TestAWorkspaceWithoutARungHasThatOfTheHost(t *testing.T) {
	t.Parallel()
	if why := environment.LacksRung("landlock"); why != nil {
		t.Logf("not here: %v", why)
		return
	}
	host := start(t, coppice.Options{Backend: coppice.Runner(coppice.RunnerOptions{}), Isolation: coppice.Isolation{Level: "landlock"}})
	made, err := host.Workspace(t.Context(), "w", workspace.Options{Isolation: coppice.Isolation{Network: true}})
	require.NoError(t, err)
	require.Equal(t, "landlock", made.Info().Isolation)
}

func TestAWorkspaceThatTheBackendCannotKeepTo(t *testing.T) {
	t.Parallel()
	host := on(t, backends.Gateway)
	_, err := host.Workspace(t.Context(), "a", workspace.Options{Limits: coppice.Limits{Memory: 1 << 20}})
	require.ErrorIs(t, err, coppice.ErrOptions)
	_, err = host.Session("a", coppice.InWorkspace("none")).Execute(t.Context(), cells("1"))
	wrong, ok := errors.AsType[*coppice.RequestError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, "workspace", wrong.Field)
}

func TestAWorkspaceBehindWallsMayWriteItsFolder(t *testing.T) {
	t.Parallel()
	closed := t.TempDir()
	host := start(t, coppice.Options{Backend: coppice.Runner(coppice.RunnerOptions{}), Isolation: coppice.Isolation{Level: "landlock", Write: []string{closed}}})
	_, err := host.Workspace(t.Context(), "w", workspace.Options{})
	require.NoError(t, err)
	s := host.Session("a", coppice.InWorkspace("w"))
	require.Contains(t, run(t, s, cells("open('here', 'w').write('x')")).Text, "1")
	require.Contains(t, run(t, s, cells("open("+quote(filepath.Join(closed, "there"))+", 'w')")).Text, "PermissionError")
	// Processes stand behind the same walls.
	for script, code := range map[string]int{"echo x > beside; cat here": 0, "echo x > '" + closed + "/there'": 2} {
		w, err := host.Workspaces().Get("w")
		require.NoError(t, err)
		p, err := w.Start(t.Context(), workspace.ProcessOptions{Args: []string{"/bin/sh", "-c", script}})
		require.NoError(t, err)
		exit, err := p.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, code == 0, exit.Code == 0, "%s: %v", script, exit)
	}
	_, err = host.Workspace(t.Context(), "idle", workspace.Options{IdleEnd: time.Hour})
	require.NoError(t, err)
}

// TestTheEndOfAWorkspaceEndsWhatItsCodeHasLeftBehind: also what has left its group, its
// session and its parent; that of another workspace goes on.
func TestTheEndOfAWorkspaceEndsWhatItsCodeHasLeftBehind(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, backend string) {
		host := on(t, backend)
		marks := map[string]string{}
		for _, name := range []string{"ends", "stays"} {
			w, err := host.Workspace(t.Context(), name, workspace.Options{})
			require.NoError(t, err)
			mark := seconds()
			marks[name] = mark
			shell := fmt.Sprintf(escapes, mark)
			r := run(t, host.Session("a", coppice.InWorkspace(name)), cells(fmt.Sprintf(cellEscapes, mark, shell)))
			require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)
			_, err = w.Start(t.Context(), workspace.ProcessOptions{Args: []string{"/bin/sh", "-c", shell + "wait"}})
			require.NoError(t, err)
			require.Eventually(t, func() bool { return len(sleepers(mark)) == cellStarts+commandStarts }, time.Minute, 20*time.Millisecond,
				"they started: %v", proc.WithArgument(mark))
		}
		ends, err := host.Workspaces().Get("ends")
		require.NoError(t, err)
		require.NoError(t, ends.End(t.Context()))
		require.Empty(t, proc.WithArgument(marks["ends"]))
		require.Len(t, sleepers(marks["stays"]), cellStarts+commandStarts)
	})
}
