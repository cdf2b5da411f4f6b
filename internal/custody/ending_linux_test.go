package custody_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/coppice-run/coppice/internal/custody"
	"github.com/coppice-run/coppice/internal/process"
)

// deaf is a custody whose custodian lives, and has let go of its socket, as one that is
// just being ended.
func deaf(t *testing.T) (dir, id string, end func()) {
	t.Helper()
	dir, id = waiting(t)
	folder := filepath.Join(dir, id)
	cmd := exec.Command("sleep", "3600")
	require.NoError(t, cmd.Start())
	end = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	t.Cleanup(end)
	r := readRecord(t, filepath.Join(folder, "record.json"))
	var err error
	r.Custodian, err = process.Identify(cmd.Process.Pid)
	require.NoError(t, err)
	writeRecord(t, filepath.Join(folder, "record.json"), r)
	require.NoError(t, os.Rename(filepath.Join(folder, "s"), filepath.Join(folder, "heard")))
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	t.Chdir(folder) // the path of a socket may not be long
	require.NoError(t, unix.Bind(fd, &unix.SockaddrUnix{Name: "s"}))
	require.NoError(t, unix.Close(fd))
	require.NoError(t, os.Chmod("s", 0o600))
	return dir, id, end
}

// TestACustodianThatIsEnding has let go of what it kept before its process has ended: it
// is gone, and not one that cannot be reached.
func TestACustodianThatIsEnding(t *testing.T) {
	dir, id, end := deaf(t)
	took := make(chan error, 1)
	go func() {
		_, err := custody.Take(within(t), custody.Options{Dir: dir}, id)
		took <- err
	}()
	select {
	case err := <-took:
		require.FailNow(t, "its end was not waited for", "%v", err)
	default:
	}
	end()
	require.ErrorIs(t, <-took, custody.ErrGone)
}

// TestACustodianThatIsDeaf lives: what it keeps is not called lost.
func TestACustodianThatIsDeaf(t *testing.T) {
	dir, id, _ := deaf(t)
	_, err := custody.Take(within(t), custody.Options{Dir: dir}, id)
	require.ErrorContains(t, err, "lives, and does not answer")
	require.NotErrorIs(t, err, custody.ErrGone)
	require.ErrorIs(t, custody.Bury(dir, id), custody.ErrUsed)
}
