package integration_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/store"
	"github.com/coppice-run/coppice/test/testpython"
	"github.com/coppice-run/coppice/workspace"
)

// TestFoldersOfAKilledHost are removed by the next one, also by one that keeps no sessions on disk,
// but for those of workspaces to which a session on disk belongs.
func TestFoldersOfAKilledHost(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	dir := filepath.Join(home, ".coppice")
	all := filepath.Join(dir, workspace.Name)
	for _, name := range []string{"left", "needed"} {
		require.NoError(t, os.MkdirAll(filepath.Join(all, name), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(all, "."+name+".mark"), []byte("own\n"), 0o600))
	}
	kept, err := store.OpenFolder(t.Context(), store.FolderOptions{Dir: filepath.Join(dir, "hibernated"), KeyFile: filepath.Join(dir, "hibernate.key")})
	require.NoError(t, err)
	for _, key := range []messages.SessionKey{{Session: "of none", Cwd: dir}, {Session: "s", Cwd: filepath.Join(all, "needed"), Workspace: "needed"}} {
		require.NoError(t, kept.Put(t.Context(), store.Header{Name: key.ID(), Session: key.String(), Python: "3.12.1", Platform: "linux/amd64", Made: time.Now(), Manifest: json.RawMessage(`{}`)}, nil))
	}
	h, err := coppice.Start(t.Context(), coppice.Options{Backend: coppice.Runner(coppice.RunnerOptions{}), Home: home, Python: testpython.Path(t)})
	require.NoError(t, err)
	t.Cleanup(func() { require.True(t, h.Shutdown(context.Background()).Clean()) })
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(all, ".left.mark")) // which goes after it
		return os.IsNotExist(err)
	}, 10*time.Second, 10*time.Millisecond)
	require.NoDirExists(t, filepath.Join(all, "left"))
	require.DirExists(t, filepath.Join(all, "needed"))
	w, err := h.Workspace(t.Context(), "left", workspace.Options{})
	require.NoError(t, err)
	require.Equal(t, filepath.Join(all, "left"), w.Folder())
	w, err = h.Workspace(t.Context(), "needed", workspace.Options{})
	require.NoError(t, err)
	require.Equal(t, filepath.Join(all, "needed~2"), w.Folder())
}
