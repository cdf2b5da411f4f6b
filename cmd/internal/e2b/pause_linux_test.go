package e2b_test

import (
	"net/http"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/e2b/wire/process"
	"github.com/coppice-run/coppice/hibernate"
	"github.com/coppice-run/coppice/workspace"
)

// TestWhatKeepsASandboxFromItsPause is named, and goes on.
func TestWhatKeepsASandboxFromItsPause(t *testing.T) {
	t.Parallel()
	s := serveKeeping(t, hibernate.Lossless)
	b := s.make(`{"timeout":600}`)
	refused := func(why ...string) {
		t.Helper()
		a := b.pause(`{}`)
		require.Equal(t, http.StatusUnprocessableEntity, a.status, a.text)
		for _, one := range why {
			require.Contains(t, a.json(t)["message"], one)
		}
		require.Equal(t, "running", b.shown()["state"])
		w, err := s.host.Workspaces().Get(b.id)
		require.NoError(t, err)
		require.False(t, w.Info().EndAt.IsZero(), "its time runs on")
	}
	b.run(`{"code":"y = 1; g = (i for i in [5])"}`)
	refused("default", "g (generator")
	require.Equal(t, "(1, 5)", b.text(`{"code":"(y, next(g))"}`), "nothing is lost")
	b.run(`{"code":"del g"}`)

	w, err := s.host.Workspaces().Get(b.id)
	require.NoError(t, err)
	p, err := w.Start(t.Context(), workspace.ProcessOptions{Args: []string{"sleep", "600"}})
	require.NoError(t, err)
	refused("sleep 600")
	require.NoError(t, p.Stop(t.Context(), "the test", -1))
	stream, err := b.processes().Start(t.Context(), connect.NewRequest(&process.StartRequest{Process: script("sleep 601")}))
	require.NoError(t, err)
	require.True(t, stream.Receive())
	refused(`"/bin/bash -l -c sleep 601"`)
	for _, p := range w.Processes() {
		require.NoError(t, p.Stop(t.Context(), "the test", -1))
	}
	_ = stream.Close() // it may end before the end of the process was read
	// Until it has become its program it has a name, and no command line.
	b.run(`{"code":"import subprocess\np = subprocess.Popen(['sleep', '602'])\nwhile not open(f'/proc/{p.pid}/cmdline').read(): pass\ndel p"}`)
	refused("sleep 602", "default")
	p, err = w.Start(t.Context(), workspace.ProcessOptions{Args: []string{"sleep", "600"}})
	require.NoError(t, err)
	require.Equal(t, http.StatusNoContent, b.pause(`{"memory":false}`).status)
	_, over := p.Exit()
	require.True(t, over, "files alone are kept")
	require.Equal(t, http.StatusCreated, b.connect(`{}`).status)
	require.Equal(t, "False", b.text(`{"code":"'y' in globals()"}`))
}
