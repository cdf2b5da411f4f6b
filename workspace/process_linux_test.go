package workspace_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/workspace"
	"github.com/coppice-run/coppice/workspace/procs"
)

func script(text string) workspace.ProcessOptions {
	return workspace.ProcessOptions{Args: []string{"/bin/sh", "-c", text}}
}

func output(t *testing.T, p *workspace.Process) string {
	t.Helper()
	r, err := p.Read(0)
	require.NoError(t, err)
	defer r.Close()
	var out strings.Builder
	for {
		entries, err := r.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return out.String()
		}
		require.NoError(t, err)
		for _, e := range entries {
			event, err := e.Event()
			require.NoError(t, err)
			out.Write(event.Data)
		}
	}
}

func TestProcessesOfAWorkspace(t *testing.T) {
	w := start(t, workspace.SetOptions{})
	defer w.stop(t)
	one := w.open(t, "a", workspace.Options{Env: map[string]string{"A": "ws", "B": "ws"}, IdleEnd: time.Hour})
	require.NoError(t, os.Mkdir(filepath.Join(one.Folder(), "sub"), 0o700))
	o := script("pwd; echo $A $B $SECRET")
	o.Env, o.Cwd = map[string]string{"B": "call"}, "sub"
	p, err := one.Start(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(one.Folder(), "sub")+"\nws call\n", output(t, p))
	same, err := one.Process(p.ID())
	require.NoError(t, err)
	require.Same(t, p, same)
	_, err = one.Process("p99")
	require.ErrorIs(t, err, workspace.ErrUnknownProcess)
	_, err = one.Start(t.Context(), workspace.ProcessOptions{Args: []string{"none-such"}})
	_, refused := errors.AsType[*procs.StartError](err)
	require.True(t, refused, "%v", err)

	require.Eventually(t, func() bool { return one.Info().InUse == 0 }, time.Minute, time.Millisecond, "those before are over")
	long, err := one.Start(t.Context(), script("sleep 600"))
	require.NoError(t, err)
	require.Equal(t, 1, one.Info().InUse, "the workspace is in use while a process runs")
	require.Zero(t, w.Followed())
	follows, err := long.Read(0)
	require.NoError(t, err)
	require.Equal(t, 1, w.Followed())
	follows.Close()
	require.Zero(t, w.Followed())
	timed := script("sleep 600")
	timed.Timeout = 20 * time.Millisecond
	short, err := one.Start(t.Context(), timed)
	require.NoError(t, err)
	exit, err := short.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, "was ended by a signal: terminated (its time of 20ms was up)", exit.String())
	require.Len(t, one.Processes(), 3)

	tree, err := w.system.Snapshot(t.Context())
	require.NoError(t, err)
	pids := map[int]bool{}
	for _, set := range tree.Children {
		for _, ws := range set.Children {
			for _, c := range ws.Children {
				pids[c.PID] = true
			}
		}
	}
	require.True(t, pids[long.PID()], "it stands below its workspace")

	require.NoError(t, one.End(t.Context()))
	exit, ended := long.Exit()
	require.True(t, ended)
	require.Equal(t, "the workspace a has ended: it was asked to end", exit.Reason)
	_, err = one.Start(t.Context(), script("true"))
	require.Equal(t, workspace.ReasonAsked, reason(t, err))
	_, err = one.Process(p.ID())
	require.Equal(t, workspace.ReasonAsked, reason(t, err))
}

func TestProcessesAreBounded(t *testing.T) {
	w := start(t, workspace.SetOptions{})
	defer w.stop(t)
	one := w.open(t, "a", workspace.Options{Limits: kernel.Limits{Files: 20, Runtime: time.Minute}})
	files, err := one.Start(t.Context(), script("while [ $(ulimit -n) != 20 ]; do :; done; echo limited"))
	require.NoError(t, err)
	require.Equal(t, "limited\n", output(t, files))
	running := 0
	for {
		if _, err = one.Start(t.Context(), script("sleep 600")); err != nil {
			break
		}
		running++
	}
	require.ErrorIs(t, err, workspace.ErrNoPlace)
	require.Equal(t, 64, running)
	all := one.Processes()
	require.NoError(t, all[len(all)-1].Signal("KILL"))
	_, err = all[len(all)-1].Wait(t.Context())
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err = one.Start(t.Context(), script("true"))
		return err == nil
	}, 3*time.Minute, 5*time.Millisecond, "the place is free again")
	// Whoever does not wait for the start does not get the process.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = one.Start(ctx, script("true"))
}

func TestShutdownEndsProcesses(t *testing.T) {
	w := start(t, workspace.SetOptions{})
	one := w.open(t, "a", workspace.Options{})
	p, err := one.Start(t.Context(), script("trap '' TERM; while true; do sleep 1; done"))
	require.NoError(t, err)
	w.stop(t)
	exit, ended := p.Exit()
	require.True(t, ended)
	require.Contains(t, exit.Reason, "shut down")
}
