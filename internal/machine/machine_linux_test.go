package machine

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// TestLook reads the limits of this machine: there are some.
func TestLook(t *testing.T) {
	t.Parallel()
	l := Look(t.TempDir())
	require.Positive(t, l.PIDs)
	require.Positive(t, l.PIDsUsed)
	require.Positive(t, l.Memory)
	require.Positive(t, l.Temp)
	require.NotEmpty(t, l.MemoryFrom)
}

// TestControlGroups takes the smallest bound of all groups above the process.
func TestControlGroups(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write := func(path, text string) {
		path = filepath.Join(root, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write("proc/cgroup", "1:name=systemd:/x\n0::/a/b\n")
	write("proc/sys/kernel/pid_max", "4194304\n")
	write("proc/loadavg", "0.1 0.2 0.3 2/345 6789\n")
	write("proc/meminfo", "MemTotal: 8000 kB\nMemFree: 1 kB\nMemAvailable: 4000 kB\n")
	write("cg/a/b/pids.max", "max\n")
	write("cg/a/pids.max", "512\n")
	write("cg/a/pids.current", "100\n")
	write("cg/a/memory.max", "4096000\n")
	write("cg/a/memory.current", "4000000\n")
	groups := cgroups(filepath.Join(root, "proc/cgroup"), filepath.Join(root, "cg"))
	require.Len(t, groups, 3)
	var l Limits
	l.pids(filepath.Join(root, "proc"), groups)
	l.memory(filepath.Join(root, "proc/meminfo"), groups)
	require.Empty(t, cmp.Diff(Limits{
		PIDs: 512, PIDsUsed: 100, PIDsFrom: filepath.Join(root, "cg/a/pids.max"),
		Memory: 4096000, Available: 96000, MemoryFrom: filepath.Join(root, "cg/a/memory.max"),
	}, l))

	l = Limits{}
	l.pids(filepath.Join(root, "proc"), nil)
	require.Equal(t, uint64(345), l.PIDsUsed)
	require.Equal(t, uint64(4194304), l.PIDs)
}

// TestLoose finds what others can read, and passes over what it was told to.
func TestLoose(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o700)) //nolint:gosec // a folder needs its x
	for name, mode := range map[string]os.FileMode{"tight": 0o600, "open": 0o644, "skipped/open": 0o644, "inside/open": 0o644} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		require.NoError(t, os.Chmod(path, mode))
	}
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "link")))
	found, err := FindLoose(dir, []string{"skipped", "inside/"}, 0o077, 10)
	require.NoError(t, err)
	require.Equal(t, []Loose{{Path: filepath.Join(dir, "open"), Why: "is open to others (mode 0644)"}}, found)
	require.NoError(t, os.Chmod(filepath.Join(dir, "inside"), 0o755)) //nolint:gosec // that is what is found
	found, err = FindLoose(dir, []string{"skipped", "inside/", "open"}, 0o077, 10)
	require.NoError(t, err)
	require.Equal(t, []Loose{{Path: filepath.Join(dir, "inside"), Why: "is open to others (mode 0755)"}}, found)

	found, err = FindLoose(filepath.Join(dir, "none"), nil, 0o077, 10)
	require.NoError(t, err)
	require.Empty(t, found)
	found, err = FindLoose(dir, nil, 0o077, 1)
	require.NoError(t, err)
	require.Len(t, found, 1)
	found, err = FindLoose(dir, nil, 0o022, 10)
	require.NoError(t, err)
	require.Empty(t, found, "others can read it, and not change it")
}
