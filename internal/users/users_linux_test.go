package users

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// asRoot says whether there are users to give out: without root the tests see that they
// are refused.
func asRoot(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() == 0 {
		return true
	}
	t.Log("not root: nothing can become another user")
	return false
}

// killer sends SIGKILL to all that it may.
func killer(t *testing.T) []string {
	t.Helper()
	python, err := exec.LookPath("/usr/bin/python3")
	require.NoError(t, err)
	return []string{python, "-I", "-S", "-c", "import os; os.kill(-1, 9)"}
}

func open(t *testing.T, registry string) *Block {
	t.Helper()
	b, err := Open(t.Context(), Options{Registry: registry, Killer: killer(t)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

// folder returns one that other users can pass through.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "coppice-users-") //nolint:usetesting // the parents of t.TempDir are this user's alone
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o711)) //nolint:gosec // as said
	return dir
}

// as starts a program as the user of a lease and waits for its first line.
func as(t *testing.T, l *Lease, program string, args ...string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(l.UID()), Gid: uint32(l.UID())}, Setsid: true}
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = out.Read(make([]byte, 1))
	require.NoError(t, err)
	t.Cleanup(func() { _ = cmd.Wait() }) // it was killed
}

func TestBlocksOfHosts(t *testing.T) {
	registry := t.TempDir()
	one, two := open(t, registry), open(t, registry)
	require.NotEqual(t, one.Group(), two.Group())
	if !asRoot(t) {
		_, err := one.Lease(t.TempDir())
		require.Error(t, err)
		return
	}
	dir := folder(t)
	a, err := one.Lease(dir)
	require.NoError(t, err)
	b, err := two.Lease(dir)
	require.NoError(t, err)
	require.NotEqual(t, a.UID(), b.UID())
	require.NoError(t, a.Release(t.Context()))
	next, err := one.Lease(dir)
	require.NoError(t, err)
	require.Greater(t, next.UID(), a.UID(), "numbers come in turn")
	require.NoError(t, one.Close())
	again := open(t, registry)
	require.Equal(t, one.Group(), again.Group(), "the block is free again")
	later, err := again.Lease(dir)
	require.NoError(t, err)
	require.Greater(t, later.UID(), next.UID(), "and goes on where the last host was")
}

func TestTheEndOfAUser(t *testing.T) {
	if !asRoot(t) {
		return
	}
	b, dir := open(t, t.TempDir()), folder(t)
	l, err := b.Lease(dir)
	require.NoError(t, err)
	info, err := os.Stat(l.Folder())
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	require.Equal(t, l.UID(), int(info.Sys().(*syscall.Stat_t).Uid))
	name := filepath.Join(shm, "coppice-users-"+strconv.Itoa(l.UID()))
	// What starts more of itself for ever, and what has left its session twice.
	as(t, l, "/bin/sh", "-c", "echo x > "+name+"; echo y; while :; do sleep 0.01 & sleep 0.005; done")
	as(t, l, "/bin/sh", "-c", "setsid sh -c 'setsid sleep 1000 & echo z' ")
	require.FileExists(t, name)
	mine := func(uid int) bool { return uid == l.UID() }
	found, err := living(mine)
	require.NoError(t, err)
	require.NotEmpty(t, found)

	require.Same(t, l, l.Share())
	require.NoError(t, l.Release(t.Context()))
	require.DirExists(t, l.Folder(), "a copy has it still")
	require.NoError(t, l.Release(t.Context()))
	found, err = living(mine)
	require.NoError(t, err)
	require.Empty(t, found)
	require.NoFileExists(t, name)
	require.NoDirExists(t, l.Folder())
}

// A host that was killed leaves processes; the next one to take the block ends them.
func TestWhatAKilledHostHasLeft(t *testing.T) {
	if !asRoot(t) {
		return
	}
	registry, dir := t.TempDir(), folder(t)
	b := open(t, registry)
	l, err := b.Lease(dir)
	require.NoError(t, err)
	as(t, l, "/bin/sh", "-c", "echo x; sleep 1000")
	require.NoError(t, b.Close()) // as the end of the process would
	next := open(t, registry)
	require.Equal(t, b.Group(), next.Group())
	found, err := living(func(uid int) bool { return uid == l.UID() })
	require.NoError(t, err)
	require.Empty(t, found)
}

func TestAUserOfWhichSomethingStays(t *testing.T) {
	if !asRoot(t) {
		return
	}
	b, dir := open(t, t.TempDir()), folder(t)
	l, err := b.Lease(dir)
	require.NoError(t, err)
	good := b.o.Killer
	b.o.Killer = []string{"/bin/sh", "-c", "echo no; exit 1"}
	as(t, l, "/bin/sh", "-c", "echo x; sleep 1000")
	require.ErrorContains(t, l.Release(t.Context()), "no")
	require.True(t, b.held[l.UID()-b.first], "it is not given out again")
	b.o.Killer = good
	require.NoError(t, b.purge(t.Context(), l.UID()))
}

func TestGrant(t *testing.T) {
	if !asRoot(t) {
		return
	}
	for _, mode := range []os.FileMode{0o700, 0o755, 0o2750} {
		dir := folder(t)
		require.NoError(t, os.Chmod(dir, mode&os.ModePerm))
		before, err := os.Stat(dir)
		require.NoError(t, err)
		const group, other = first + 7*size, first + 8*size
		undo, err := Grant(dir, group)
		require.NoError(t, err)
		list, err := readList(dir, access)
		require.NoError(t, err)
		require.Contains(t, list, ace{tagGroup, all, group})
		again, err := Grant(dir, other)
		require.NoError(t, err)
		require.NoError(t, undo())
		list, err = readList(dir, access)
		require.NoError(t, err)
		require.Contains(t, list, ace{tagGroup, all, other}, "that of another host stays")
		require.NotContains(t, list, ace{tagGroup, all, group})
		require.NoError(t, again())
		for _, name := range []string{access, byDefault} {
			_, err := unix.Getxattr(dir, name, nil)
			require.ErrorIs(t, err, unix.ENODATA, name)
		}
		after, err := os.Stat(dir)
		require.NoError(t, err)
		require.Equal(t, before.Mode(), after.Mode())
		require.NoError(t, os.RemoveAll(dir))
		require.NoError(t, undo(), "a folder that is gone is closed")
	}
	_, err := Grant("/proc/self", first)
	require.ErrorContains(t, err, "access lists")
	require.ErrorContains(t, err, "/proc/self")
}

// TestPass: a group gets through folders that others may not enter, and sees nothing of
// them; afterwards they are what they were.
func TestPass(t *testing.T) {
	if !asRoot(t) {
		return
	}
	top := folder(t)
	require.NoError(t, os.Chmod(top, 0o700))
	open, inner := filepath.Join(top, "open"), filepath.Join(top, "open", "shut", "inner")
	require.NoError(t, os.MkdirAll(inner, 0o700))
	require.NoError(t, os.Chmod(open, 0o755)) //nolint:gosec // it is to be one that all may enter
	const group, other = first + 7*size, first + 8*size
	undo, err := Pass(inner, group)
	require.NoError(t, err)
	again, err := Pass(inner, other)
	require.NoError(t, err)
	may := func(group uint32, args ...string) error {
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: first + 1, Gid: first + 1, Groups: []uint32{group}}}
		return cmd.Run()
	}
	require.NoError(t, may(group, "stat", inner))
	require.Error(t, may(group, "ls", top))
	require.Error(t, may(group, "touch", filepath.Join(top, "x")))
	require.NoError(t, undo())
	require.Error(t, may(group, "stat", inner))
	require.NoError(t, may(other, "stat", inner), "that of another host stays")
	require.NoError(t, again())
	for _, dir := range []string{top, open, filepath.Dir(inner)} {
		_, err := unix.Getxattr(dir, access, nil)
		require.ErrorIs(t, err, unix.ENODATA, dir)
	}
	info, err := os.Stat(top)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}
