package sharedgateway_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/sharedgateway"
	"github.com/coppice-run/coppice/messages"
)

// TestLeft: the sessions that have a log, are of the name, and that nobody has are claimed.
func TestLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	held := map[string]*sharedgateway.Claim{}
	for session, e := range map[string]sharedgateway.Entry{
		"ours": {Kernel: "1", Seal: []byte("a")}, "other": {Kernel: "2", Seal: []byte("a"), Name: "other"}, "silent": {Kernel: "3"}, "held": {Kernel: "4", Seal: []byte("a")},
	} {
		c, err := sharedgateway.Take(t.Context(), dir, messages.SessionKey{Session: session, Cwd: "/"})
		require.NoError(t, err)
		require.NoError(t, c.Write(e))
		held[session] = c
		if session != "held" {
			c.Release()
		}
	}
	left := sharedgateway.Left(dir, "")
	require.Len(t, left, 1)
	require.Equal(t, "ours", left[0].Key().Session)
	require.Empty(t, sharedgateway.Left(dir, ""), "it is claimed")
	folder, name := left[0].Log()
	require.NoError(t, os.WriteFile(filepath.Join(folder, name), nil, 0o600))
	require.NoError(t, left[0].Forget())
	require.NoFileExists(t, filepath.Join(folder, name))
	left[0].Release()
	held["held"].Release()
	require.Len(t, sharedgateway.Left(dir, ""), 1)

	require.NoError(t, os.WriteFile(filepath.Join(folder, name), nil, 0o600)) // its key is gone
	gone, err := sharedgateway.Clean(t.Context(), dir)
	require.NoError(t, err)
	require.NotEmpty(t, gone)
	require.NoFileExists(t, filepath.Join(folder, name))
}
