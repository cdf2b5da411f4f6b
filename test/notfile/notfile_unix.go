//go:build unix

package notfile

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Kinds are those that this system has.
var Kinds = []Kind{FIFO, Device, Socket, Directory}

func put(tb testing.TB, kind Kind, path string) {
	tb.Helper()
	switch kind {
	case FIFO:
		require.NoError(tb, syscall.Mkfifo(path, 0o600))
	case Device:
		require.NoError(tb, os.Symlink("/dev/zero", path))
	case Socket:
		// The address of a socket is short, so it is made elsewhere.
		dir, err := os.MkdirTemp("/tmp", "nf-")
		require.NoError(tb, err)
		tb.Cleanup(func() { _ = os.RemoveAll(dir) })
		l, err := (&net.ListenConfig{}).Listen(tb.Context(), "unix", filepath.Join(dir, "s"))
		require.NoError(tb, err)
		tb.Cleanup(func() { _ = l.Close() })
		require.NoError(tb, os.Symlink(filepath.Join(dir, "s"), path))
	default:
		require.FailNow(tb, "no such kind", kind)
	}
}
