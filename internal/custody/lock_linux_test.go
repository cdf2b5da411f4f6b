package custody_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/coppice-run/coppice/internal/custody"
	"github.com/coppice-run/coppice/internal/file/temp"
	"github.com/coppice-run/coppice/internal/process"
)

// locked has the lock of a custody that waits, and has host.lock say that a process has
// it; free lets go of it.
func locked(t *testing.T, host process.Identity) (dir, id string, free func()) {
	t.Helper()
	dir, id = waiting(t)
	lock, err := os.OpenFile(filepath.Join(dir, id, "host.lock"), os.O_RDWR, 0)
	require.NoError(t, err)
	free = func() { _ = lock.Close() }
	t.Cleanup(free)
	require.NoError(t, unix.Flock(int(lock.Fd()), unix.LOCK_EX))
	data, err := json.Marshal(host)
	require.NoError(t, err)
	require.NoError(t, lock.Truncate(0))
	_, err = lock.WriteAt(data, 0)
	require.NoError(t, err)
	return dir, id, free
}

func sleeper(t *testing.T) (process.Identity, func()) {
	t.Helper()
	cmd := exec.Command("sleep", "3600")
	require.NoError(t, cmd.Start())
	end := func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	t.Cleanup(end)
	id, err := process.Identify(cmd.Process.Pid)
	require.NoError(t, err)
	return id, end
}

// TestTheLockOfAHostThatHasEnded: a child that a killed host was just starting has its lock
// for an instant longer. Nobody takes what the host had kept for that of one that lives.
func TestTheLockOfAHostThatHasEnded(t *testing.T) {
	host, end := sleeper(t)
	end()
	dir, id, free := locked(t, host)
	looked := make(chan []custody.Standing, 1)
	go func() {
		found, _ := custody.Scan(t.Context(), dir)
		looked <- found
	}()
	select {
	case found := <-looked:
		require.FailNow(t, "its lock was not waited for", "%v", found)
	default:
	}
	free()
	found := <-looked
	require.Len(t, found, 1)
	require.Equal(t, custody.Waiting, found[0].State)
	require.NoError(t, take(t, dir, id).End(within(t)))
}

// TestTheLockOfAHostThatLives: who finds it does not wait.
func TestTheLockOfAHostThatLives(t *testing.T) {
	host, _ := sleeper(t)
	dir, id, free := locked(t, host)
	found, err := custody.Scan(t.Context(), dir)
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, custody.Used, found[0].State)
	_, err = custody.Take(within(t), custody.Options{Dir: dir}, id)
	require.ErrorIs(t, err, custody.ErrUsed)
	free()
	require.NoError(t, take(t, dir, id).End(within(t)))
}

// TestWhatIsUnfinished: the next host removes what one has left that was killed while it
// began, and nothing of one that lives.
func TestWhatIsUnfinished(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	here := strings.Split(temp.Maker(), "-")
	alive := "." + temp.Maker() + "-ALIVE"
	ended := "." + here[0] + "-another-" + here[2] + "-ENDED" // the number has another process now
	for _, name := range []string{alive, ended, ".UNKNOWN"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o700))
	}
	old := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(dir, ".UNKNOWN"), old, old))
	c, err := custody.Begin(within(t), custody.Options{Dir: dir, Python: python()})
	require.NoError(t, err)
	require.NoError(t, c.End(within(t)))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1)
	require.Equal(t, alive, left[0].Name())
}
