package cgroup

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// base makes a group for a test under that of this process. Where that is impossible,
// it checks that the error says so, and returns "".
func base(t *testing.T) string {
	t.Helper()
	own, _, _, err := Check(Options{})
	if err != nil {
		var unusable *UnusableError
		require.ErrorAs(t, err, &unusable)
		_, err = Open(t.Context(), Options{})
		require.ErrorAs(t, err, &unusable)
		return ""
	}
	dir := filepath.Join(own, "test-of-coppice-"+strconv.Itoa(os.Getpid())+"-"+strings.ReplaceAll(t.Name(), "/", "-"))
	require.NoError(t, os.Mkdir(dir, 0o700))
	t.Cleanup(func() { // a test that failed may leave processes
		ctx, cancel := context.WithTimeout(context.Background(), waitFor)
		defer cancel()
		require.NoError(t, remove(ctx, dir, Options{}.does()))
	})
	return dir
}

// TestRealGroups has the system keep processes in groups and end them.
func TestRealGroups(t *testing.T) {
	t.Parallel()
	b := base(t)
	if b == "" {
		return
	}
	tree, err := Open(t.Context(), Options{Base: b})
	require.NoError(t, err)
	born, err := tree.New(Limits{})
	require.NoError(t, err)
	dir, err := born.Open()
	require.NoError(t, err)
	require.Len(t, dir, 1)
	defer func() { _ = dir[0].Close() }()
	start := func(attr *syscall.SysProcAttr, files []*os.File, code string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", code)
		cmd.SysProcAttr, cmd.ExtraFiles = attr, files
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		line := make([]byte, len("there\n"))
		_, err = out.Read(line)
		require.NoError(t, err)
		return cmd
	}
	// A process that begins in a group, and one that leaves its session and group.
	const detached = "setsid sleep 1000 </dev/null >/dev/null 2>&1 & echo there; sleep 1000"
	cmd := start(&syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir[0].Fd())}, nil, detached)
	require.Eventually(t, func() bool { pids, err := members(born.Dir()); return err == nil && len(pids) > 1 }, waitFor, tick)

	// A process that enters one by a file that was opened for it.
	entered, err := tree.New(Limits{})
	require.NoError(t, err)
	join, err := entered.Join()
	require.NoError(t, err)
	other := start(nil, join, "echo 0 >&3; exec 3>&-; echo there; sleep 1000")
	require.NoError(t, join[0].Close())
	pids, err := members(entered.Dir())
	require.NoError(t, err)
	require.Contains(t, pids, other.Process.Pid)

	require.NoError(t, born.Remove(t.Context()))
	require.NoDirExists(t, born.Dir())
	require.Error(t, cmd.Wait(), "it was killed")
	require.NoError(t, entered.Remove(t.Context()))
	require.Error(t, other.Wait())
	require.NoError(t, tree.Close(t.Context()))
	require.NoDirExists(t, tree.Dir())
}

// TestRealLeftovers removes what a host left that was killed.
func TestRealLeftovers(t *testing.T) {
	t.Parallel()
	b := base(t)
	if b == "" {
		return
	}
	dead := filepath.Join(b, "coppice-"+strconv.Itoa(1<<30)+"-x-"+namespace("/proc"))
	require.NoError(t, os.MkdirAll(filepath.Join(dead, "1", "deeper"), 0o700))
	f, err := os.Open(filepath.Join(dead, "1", "deeper"))
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	cmd := exec.CommandContext(t.Context(), "/bin/sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd())}
	require.NoError(t, cmd.Start())
	require.Equal(t, []string{dead}, Leftovers(Options{Base: b}))
	tree, err := Open(t.Context(), Options{Base: b})
	require.NoError(t, err)
	require.NoDirExists(t, dead)
	require.Error(t, cmd.Wait())
	require.NoError(t, tree.Close(t.Context()))
}

// The bounds of a wait for processes.
const (
	waitFor = 20 * time.Second
	tick    = 2 * time.Millisecond
)
