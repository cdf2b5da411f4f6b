package temp_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/file/temp"
)

// TestAbandonedSockets: a socket goes when its process has ended and nobody listens there, as one
// of another container still may.
func TestAbandonedSockets(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30)) // longer than the path of a socket may be
	require.Empty(t, temp.AbandonedSockets(dir), "the folder is not there")
	require.NoError(t, os.Mkdir(dir, 0o700))
	folder, err := os.Open(dir)
	require.NoError(t, err)
	defer folder.Close()
	ended := exec.Command("true")
	require.NoError(t, ended.Run())
	listen := func(name string, leave bool) {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), name), Net: "unix"})
		require.NoError(t, err)
		l.SetUnlinkOnClose(false)
		if leave {
			require.NoError(t, l.Close())
			return
		}
		t.Cleanup(func() { _ = l.Close() })
	}
	gone, lives := ended.Process.Pid, os.Getpid()
	listen(fmt.Sprintf("serve-%d.sock", gone), true)
	listen(fmt.Sprintf("handover-%d.sock", gone), true)
	listen(fmt.Sprintf("other-%d.sock", gone), false) // a process of another container
	listen(fmt.Sprintf("serve-%d.sock", lives), true) // it may be about to listen
	listen(fmt.Sprintf("handover-%d.sock", lives), false)
	listen("socket", true)
	require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("file-%d.sock", gone)), nil, 0o600))
	want := []string{filepath.Join(dir, fmt.Sprintf("handover-%d.sock", gone)), filepath.Join(dir, fmt.Sprintf("serve-%d.sock", gone))}
	require.Equal(t, want, temp.AbandonedSockets(dir))
	removed, err := temp.CleanSockets(dir)
	require.NoError(t, err)
	require.Equal(t, want, removed)
	require.Empty(t, temp.AbandonedSockets(dir))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 5)
}
