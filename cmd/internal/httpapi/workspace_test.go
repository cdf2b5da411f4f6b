package httpapi_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpapi"
	"github.com/coppice-run/coppice/messages"
)

// TestAWorkspaceOverHTTP is made with what it may have, its sessions are its own, and its
// end ends them.
func TestAWorkspaceOverHTTP(t *testing.T) {
	t.Parallel()
	s := serve(t, coppice.Options{}, httpapi.Options{})
	ctx := t.Context()
	asked := client.NewWorkspace{
		Name: "etl", Env: map[string]string{"STAGE": "test"}, Pass: []string{}, Labels: map[string]string{"team": "data"}, Owner: "ada",
		Limits: client.WorkspaceLimits{Runtime: 3600, Files: 256}, Lifetime: client.Lifetime{EndIn: 3600, IdleEnd: 600}, Quota: 1 << 20,
	}
	w, err := s.CreateWorkspace(ctx, asked)
	require.NoError(t, err)
	require.Equal(t, asked.Limits, w.Limits)
	require.InDelta(t, 600, w.IdleEnd, 0)
	require.WithinDuration(t, time.Now().Add(time.Hour), w.EndAt, 10*time.Minute)
	require.NotEmpty(t, w.Isolation)
	again, err := s.CreateWorkspace(ctx, asked)
	require.NoError(t, err)
	require.Equal(t, w.Made.UnixNano(), again.Made.UnixNano())
	_, err = s.CreateWorkspace(ctx, client.NewWorkspace{Name: "web", Labels: map[string]string{"team": "data", "tier": "1"}})
	require.NoError(t, err)
	for want, f := range map[string]client.FilterWorkspaces{
		"etl web": {}, "etl": {Owner: "ada"}, "web": {Labels: map[string]string{"team": "data", "tier": ""}}, "": {Labels: map[string]string{"team": "x"}},
	} {
		list, err := s.Workspaces(ctx, f)
		require.NoError(t, err)
		names := []string{}
		for _, one := range list {
			names = append(names, one.Name)
		}
		require.Equal(t, want, strings.Join(names, " "))
	}

	in := func(name, code string) string {
		t.Helper()
		x, err := s.Start(ctx, client.Execute{Session: "a", Workspace: name, Cells: cells(code)})
		require.NoError(t, err)
		require.Equal(t, name, x.Workspace)
		x, err = s.Wait(ctx, x.ID)
		require.NoError(t, err)
		require.Equal(t, messages.OutcomeOK, x.Outcome, x.Result.Text)
		return x.Result.Cells[0].Output
	}
	in("etl", "x = 'of etl'")
	require.Equal(t, "'"+w.Folder+"'", in("etl", "import os; os.getcwd()"))
	require.Equal(t, "('test', None)", in("etl", "os.environ.get('STAGE'), os.environ.get('STAGE_2')"))
	require.Equal(t, "False", in("web", "'x' in globals()"))
	in("etl", "open('made.txt', 'w').write('by the session')")
	f, err := s.StatFile(ctx, "etl", "made.txt")
	require.NoError(t, err)
	require.Equal(t, int64(len("by the session")), f.Size)

	_, err = s.ApplyNotebook(ctx, client.Apply{Path: "book.ipynb", Text: "# %% [code]\nprint(x, os.getcwd())\n"})
	require.NoError(t, err)
	book, err := s.RunNotebook(ctx, client.RunNotebook{Path: "book.ipynb", Session: "a", Workspace: "etl"})
	require.NoError(t, err)
	book, err = s.Wait(ctx, book.ID)
	require.NoError(t, err)
	require.Equal(t, "etl", book.Workspace)
	require.Contains(t, book.Result.Cells[0].Output, "of etl "+w.Folder)

	key := messages.SessionKey{Session: "a", Workspace: "etl"}
	one, err := s.Session(ctx, key)
	require.NoError(t, err)
	require.Equal(t, "etl", one.Workspace)
	runs, err := s.Executions(ctx, messages.SessionKey{Workspace: "web"})
	require.NoError(t, err)
	require.Len(t, runs, 1)
	opened, err := s.Open(ctx, client.Open{Session: "b", Workspace: "etl"})
	require.NoError(t, err)
	require.Equal(t, w.Folder, opened.Cwd)
	c, err := s.Checkpoint(ctx, key)
	require.NoError(t, err)
	in("etl", "x = 'changed'")
	require.NoError(t, s.Rewind(ctx, key, c.ID))
	require.Equal(t, "'of etl'", in("etl", "x"))
	copies, err := s.Fork(ctx, key, 1, "")
	require.NoError(t, err)
	require.Equal(t, "etl", copies[0].Workspace)
	for _, name := range []string{"none", "../etl"} {
		_, err = s.Start(ctx, client.Execute{Session: "a", Workspace: name, Cells: cells("1")})
		require.Equal(t, http.StatusNotFound, statusOf(t, err))
		_, err = s.Session(ctx, messages.SessionKey{Session: "a", Workspace: name})
		require.Equal(t, http.StatusNotFound, statusOf(t, err))
	}

	labels, pinned := map[string]string{}, true
	changed, err := s.ChangeWorkspace(ctx, "etl", client.ChangeWorkspace{Labels: labels, Lifetime: &client.Lifetime{}, Pinned: &pinned})
	require.NoError(t, err)
	require.Empty(t, changed.Labels)
	require.Zero(t, changed.EndAt)
	require.Zero(t, changed.IdleEnd)
	require.True(t, changed.Pinned)
	changed, err = s.ChangeWorkspace(ctx, "etl", client.ChangeWorkspace{})
	require.NoError(t, err)
	require.True(t, changed.Pinned, "what is left out stays")

	x, err := s.Start(ctx, client.Execute{Session: "a", Workspace: "etl", Cells: cells("import time; time.sleep(600)")})
	require.NoError(t, err)
	require.NoError(t, s.EndWorkspace(ctx, "etl"))
	x, err = s.Wait(ctx, x.ID)
	require.NoError(t, err)
	require.NotEqual(t, messages.OutcomeOK, x.Outcome)
	require.NoDirExists(t, w.Folder)
	_, err = s.Workspace(ctx, "etl")
	require.ErrorContains(t, err, "asked to end")
	_, err = s.Start(ctx, client.Execute{Session: "a", Workspace: "etl", Cells: cells("1")})
	require.Equal(t, http.StatusUnprocessableEntity, statusOf(t, err))
	kept, err := s.Checkpoints(ctx)
	require.NoError(t, err)
	require.Empty(t, kept, "they end with their workspace")

	// One that ends by itself says when and why.
	_, err = s.ChangeWorkspace(ctx, "web", client.ChangeWorkspace{Lifetime: &client.Lifetime{EndIn: 0.01}})
	require.NoError(t, err)
	require.Eventually(t, func() bool { _, err = s.Workspace(ctx, "web"); return err != nil }, time.Minute, 5*time.Millisecond)
	require.ErrorContains(t, err, "its end time")
}

// TestAFolderThatIsGiven stays when its workspace ends.
func TestAFolderThatIsGiven(t *testing.T) {
	t.Parallel()
	s := serve(t, coppice.Options{}, httpapi.Options{})
	dir := t.TempDir()
	_, err := s.CreateWorkspace(t.Context(), client.NewWorkspace{Name: "w", Folder: dir})
	require.NoError(t, err)
	for i := range 3 {
		_, err = s.WriteFile(t.Context(), "w", fmt.Sprint("f", i), strings.NewReader("x"), client.WriteFile{New: true, Mode: "0640"})
		require.NoError(t, err)
	}
	if runtime.GOOS == "linux" { // whose names are bytes
		require.NoError(t, os.WriteFile(filepath.Join(dir, "f3\xff"), nil, 0o600))
		list, err := s.ListFiles(t.Context(), "w", client.ListFiles{})
		require.NoError(t, err)
		require.Len(t, list.Files, 4)
		require.False(t, list.Files[2].NotUTF8)
		require.True(t, list.Files[3].NotUTF8, "what is listed under a name that leads nowhere says so")
	}
	require.NoError(t, s.EndWorkspace(t.Context(), "w"))
	info, err := os.Stat(filepath.Join(dir, "f2"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o640), info.Mode().Perm()&0o640)
}
