package custody_test

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/coppice-run/coppice/internal/custody"
	"github.com/coppice-run/coppice/internal/process"
)

// recorded is record.json.
type recorded struct {
	Custodian process.Identity `json:"custodian"`
	Token     string           `json:"token"`
}

func readRecord(t *testing.T, path string) recorded {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	var r recorded
	require.NoError(t, json.Unmarshal(data, &r))
	return r
}

func writeRecord(t *testing.T, path string, r recorded) {
	t.Helper()
	data, err := json.Marshal(r)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, data, 0o600))
}

// waiting begins a custody and leaves it to the next host. It is ended with the test, by
// the record as it was.
func waiting(t *testing.T) (dir, id string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "kept")
	c, err := custody.Begin(within(t), custody.Options{Dir: dir, Python: python(), KeepFor: long})
	require.NoError(t, err)
	require.NoError(t, c.Put(within(t), custody.Item{Name: "thing"}))
	require.NoError(t, c.Leave(within(t)))
	t.Cleanup(func() {
		require.NoError(t, unix.Kill(c.Custodian().PID, unix.SIGTERM))
		gone(t, c.Custodian())
	})
	return dir, c.ID()
}

// TestAHostRefuses: a folder that is not what it has to be is not believed, and the reason
// is named. The custody itself is as good as before.
func TestAHostRefuses(t *testing.T) {
	self, err := process.Identify(os.Getpid())
	require.NoError(t, err)
	parent, err := process.Identify(os.Getppid())
	require.NoError(t, err)
	for name, c := range map[string]struct {
		forge  func(t *testing.T, folder string)
		reason string
	}{
		"a record that others may read": {func(t *testing.T, folder string) {
			require.NoError(t, os.Chmod(filepath.Join(folder, "record.json"), 0o644))
		}, "is open to other users"},
		"a lock that others may take": {func(t *testing.T, folder string) {
			require.NoError(t, os.Chmod(filepath.Join(folder, "host.lock"), 0o666))
		}, "is open to other users"},
		"a folder that others may enter": {func(t *testing.T, folder string) {
			require.NoError(t, os.Chmod(folder, 0o755)) //nolint:gosec // what is refused
		}, "is open to other users"},
		"a record elsewhere": {func(t *testing.T, folder string) {
			path := filepath.Join(folder, "record.json")
			require.NoError(t, os.Rename(path, filepath.Join(folder, "other")))
			require.NoError(t, os.Symlink("other", path))
		}, "is a symbolic link"},
		"a folder elsewhere": {func(t *testing.T, folder string) {
			require.NoError(t, os.Rename(folder, folder+"x"))
			require.NoError(t, os.Symlink(folder+"x", folder))
			t.Cleanup(func() { require.NoError(t, os.Rename(folder+"x", folder)) })
			t.Cleanup(func() { require.NoError(t, os.Remove(folder)) })
		}, "is not a folder"},
		"no record of one": {func(t *testing.T, folder string) {
			require.NoError(t, os.WriteFile(filepath.Join(folder, "record.json"), []byte(`{"token":"x"}`), 0o600))
		}, "does not say who keeps it"},
		"a wrong token": {func(t *testing.T, folder string) {
			r := readRecord(t, filepath.Join(folder, "record.json"))
			r.Token += "x"
			writeRecord(t, filepath.Join(folder, "record.json"), r)
		}, "the token is wrong"},
		"another process": {func(t *testing.T, folder string) {
			r := readRecord(t, filepath.Join(folder, "record.json"))
			r.Custodian = parent
			writeRecord(t, filepath.Join(folder, "record.json"), r)
		}, "answers, and process"},
		"a server of this process that says it is the custodian": {func(t *testing.T, folder string) {
			require.NoError(t, os.Remove(filepath.Join(folder, "s")))
			fake(t, filepath.Join(folder, "s"))
		}, "answers, and process"},
		"this process": {func(t *testing.T, folder string) {
			r := readRecord(t, filepath.Join(folder, "record.json"))
			r.Custodian = self
			writeRecord(t, filepath.Join(folder, "record.json"), r)
		}, "answers, and process"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, id := waiting(t)
			c.forge(t, filepath.Join(dir, id))
			_, err := custody.Take(within(t), custody.Options{Dir: dir}, id)
			var refused *custody.RefusedError
			require.ErrorAs(t, err, &refused)
			require.ErrorContains(t, err, c.reason)
		})
	}
	t.Run("another user's file", func(t *testing.T) {
		dir, id := waiting(t)
		path := filepath.Join(dir, id, "record.json")
		require.NoError(t, custody.Belongs(path, os.Geteuid()))
		require.ErrorContains(t, custody.Belongs(path, os.Geteuid()+1), "belongs to user")
	})
	t.Run("a process that began at another time", func(t *testing.T) {
		dir, id := waiting(t)
		path := filepath.Join(dir, id, "record.json")
		r := readRecord(t, path)
		r.Custodian.Start = parent.Start + "x"
		writeRecord(t, path, r)
		_, err := custody.Take(within(t), custody.Options{Dir: dir}, id)
		require.ErrorIs(t, err, custody.ErrGone) // whoever has the number now
	})
	for _, id := range []string{"", ".", "..", "../kept", "a/b"} {
		_, err := custody.Take(within(t), custody.Options{Dir: t.TempDir()}, id)
		var refused *custody.RefusedError
		require.ErrorAs(t, err, &refused, id)
	}
}

// fake is a server that nothing must be said to.
func fake(t *testing.T, socket string) {
	t.Helper()
	short, err := os.MkdirTemp("", "s")
	require.NoError(t, err)
	l, err := net.Listen("unix", filepath.Join(short, "s")) // the path of a socket may not be long
	require.NoError(t, err)
	require.NoError(t, os.Rename(filepath.Join(short, "s"), socket))
	require.NoError(t, os.Remove(short))
	require.NoError(t, l.(*net.UnixListener).SetDeadline(time.Now().Add(patience)))
	said := make(chan int, 1)
	go func() { // ends with the connection, or with the listener; said is its join
		n := 0
		if conn, err := l.Accept(); err == nil {
			n, _ = conn.Read(make([]byte, 1<<10))
			_ = conn.Close()
		}
		said <- n
	}()
	t.Cleanup(func() {
		require.Zero(t, <-said, "the token was said to a stranger")
		_ = l.Close()
	})
}

// TestACustodianRefuses: one that does not prove that it is the next host is told why, and
// what is kept waits on for the one that is.
func TestACustodianRefuses(t *testing.T) {
	dir, id := waiting(t)
	folder := filepath.Join(dir, id)
	token := readRecord(t, filepath.Join(folder, "record.json")).Token
	self, err := process.Identify(os.Getpid())
	require.NoError(t, err)
	parent, err := process.Identify(os.Getppid())
	require.NoError(t, err)
	free, err := os.OpenFile(filepath.Join(folder, "host.lock"), os.O_RDWR, 0)
	require.NoError(t, err)
	defer func() { _ = free.Close() }()
	other, err := os.Create(filepath.Join(t.TempDir(), "host.lock"))
	require.NoError(t, err)
	defer func() { _ = other.Close() }()
	require.NoError(t, unix.Flock(int(other.Fd()), unix.LOCK_EX))

	refuses := func(reason, token string, as process.Identity, lock *os.File) {
		t.Helper()
		err := custody.Hello(within(t), folder, token, as, lock)
		var refused *custody.RefusedError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, reason, refused.Reason)
	}
	const wrongToken, wrongProcess, noLock = "the token is wrong", "it is not the process that it says it is", "it does not hold the lock of the host"
	refuses(wrongToken, "", self, free)
	refuses(wrongToken, token[1:], self, free)
	refuses(wrongProcess, token, parent, free)
	refuses(wrongProcess, token, process.Identity{PID: self.PID, Start: "1" + self.Start}, free)
	refuses(noLock, token, self, nil)
	refuses(noLock, token, self, other)
	refuses(noLock, token, self, free) // of the right file, and nobody has it

	// Another has it: to have the file open is not to hold the lock.
	holder, err := os.OpenFile(filepath.Join(folder, "host.lock"), os.O_RDWR, 0)
	require.NoError(t, err)
	require.NoError(t, unix.Flock(int(holder.Fd()), unix.LOCK_EX))
	refuses(noLock, token, self, free)
	_, err = custody.Take(within(t), custody.Options{Dir: dir}, id)
	require.ErrorIs(t, err, custody.ErrUsed)
	require.ErrorIs(t, custody.Bury(dir, id), custody.ErrUsed)
	require.NoError(t, holder.Close())
	require.ErrorIs(t, custody.Bury(dir, id), custody.ErrUsed) // its custodian lives

	for _, what := range []string{"GET / HTTP/1.1\r\n\r\n", "\x04\x00\x00\x00\x00\x00\x00\x00null", "\x02\x00\x00\x00\x00\x00\x00\x00[[", "\xff\xff\xff\xff\x00\x00\x00\x00", "\x02\x00\x00\x00\x01\x00\x00\x00{}"} {
		_ = custody.Greet(folder, []byte(what))
	}
	c, err := custody.Take(within(t), custody.Options{Dir: dir, KeepFor: long}, id)
	require.NoError(t, err)
	require.Equal(t, []string{"thing"}, c.Names())
	_, err = custody.Take(within(t), custody.Options{Dir: dir}, id)
	require.ErrorIs(t, err, custody.ErrUsed)
	require.NoError(t, c.Leave(within(t)))
}
