package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/internal/process"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pretended is a folder that looks like a cgroupfs with a process in /own.
type pretended struct {
	t    *testing.T
	root string
	o    Options
}

// pretend makes one. The group of this process is /own, with controllers and the
// processes pids.
func pretend(t *testing.T, controllers string, pids ...int) *pretended {
	t.Helper()
	p := &pretended{t: t, root: t.TempDir()}
	p.write("proc/self/cgroup", "1:name=systemd:/x\n0::/slice/own\n")
	p.write("proc/self/mountinfo", "22 1 0:21 / /proc rw - proc proc rw\n"+
		"30 1 0:26 /slice "+strings.ReplaceAll(filepath.Join(p.root, "fs"), " ", `\040`)+" rw,nosuid shared:4 - cgroup2 cgroup2 rw\n")
	ns, err := os.Readlink("/proc/self/ns/pid")
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(p.root, "proc/self/ns"), 0o700))
	require.NoError(t, os.Symlink(ns, filepath.Join(p.root, "proc/self/ns/pid")))
	p.o = Options{Want: []string{Memory, PIDs, CPU}, Proc: filepath.Join(p.root, "proc"), system: &system{mkdir: p.mkdir, rmdir: p.rmdir}}
	require.NoError(t, os.MkdirAll(filepath.Join(p.root, "fs"), 0o700))
	require.NoError(t, p.mkdir(p.own()))
	p.write("fs/own/cgroup.controllers", controllers)
	var text strings.Builder
	for _, pid := range pids {
		fmt.Fprintln(&text, pid)
	}
	p.write("fs/own/cgroup.procs", text.String())
	return p
}

func (p *pretended) own() string { return filepath.Join(p.root, "fs/own") }

func (p *pretended) write(path, text string) {
	p.t.Helper()
	path = filepath.Join(p.root, path)
	require.NoError(p.t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(p.t, os.WriteFile(path, []byte(text), 0o600))
}

func (p *pretended) read(path string) string {
	b, err := os.ReadFile(filepath.Join(p.root, path))
	if err != nil {
		return "?"
	}
	return string(b)
}

// mkdir makes a group with its files.
func (p *pretended) mkdir(path string) error {
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	for _, name := range []string{
		fileProcs, fileControllers, fileSubtree, fileEvents, fileKill,
		"memory.max", "memory.oom.group", "memory.events", "memory.current", "memory.stat", "pids.max", "pids.events", "cpu.max",
	} {
		if err := os.WriteFile(filepath.Join(path, name), nil, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// rmdir removes a group that has no processes and none below it. One that was
// killed has none.
func (p *pretended) rmdir(path string) error {
	if _, err := os.Stat(path); err != nil {
		return err
	}
	procs, err := os.ReadFile(filepath.Join(path, fileProcs))
	killed, _ := os.ReadFile(filepath.Join(path, fileKill))
	if err != nil || len(below(path)) > 0 || len(procs) > 0 && len(killed) == 0 {
		return &fs.PathError{Op: "rmdir", Path: path, Err: syscall.EBUSY}
	}
	return os.RemoveAll(path)
}

// TestLimitsThatTheKernelTakes: none is refused for being more than there can be, or hardly
// anything.
func TestLimitsThatTheKernelTakes(t *testing.T) {
	t.Parallel()
	for processors, want := range map[float64]int64{1e-9: 1000, .5: 50_000, 1 << 20: 104_857_600_000, 1 << 30: 1 << 43, math.MaxFloat64: 1 << 43, math.Inf(1): 1 << 43} {
		require.Equal(t, want, quota(processors), "%v", processors)
	}
	require.Equal(t, "7", tasks(7))
	require.Equal(t, "4194304", tasks(math.MaxInt))
}

func TestAGroupHasItsLimits(t *testing.T) {
	t.Parallel()
	p := pretend(t, "cpuset cpu memory pids\n")
	tree, err := Open(t.Context(), p.o)
	require.NoError(t, err)
	require.Equal(t, []string{Memory, PIDs, CPU}, tree.Controllers())
	require.Empty(t, tree.Lacking())
	require.Equal(t, "+memory +pids +cpu", p.read("fs/own/cgroup.subtree_control"))

	g, err := tree.New(Limits{Memory: 1 << 20, Tasks: 7, Processors: 1.5})
	require.NoError(t, err)
	rel, err := filepath.Rel(p.root, g.Dir())
	require.NoError(t, err)
	require.Equal(t, "1048576", p.read(rel+"/memory.max"))
	require.Equal(t, "1", p.read(rel+"/memory.oom.group"))
	require.Equal(t, "7", p.read(rel+"/pids.max"))
	require.Equal(t, "150000 100000", p.read(rel+"/cpu.max"))
	require.Equal(t, "+memory +pids +cpu", p.read(filepath.Dir(rel)+"/cgroup.subtree_control"))

	require.Equal(t, Usage{Memory: -1}, g.Usage())
	p.write(rel+"/memory.current", "5000\n")
	p.write(rel+"/memory.stat", "anon 4000\ninactive_file 900\n")
	p.write(rel+"/memory.events", "low 0\noom 2\noom_kill 3\n")
	p.write(rel+"/pids.events", "max 4\n")
	require.Equal(t, Usage{Memory: 4100, Killed: 3, Refused: 4}, g.Usage())

	p.write(rel+"/cgroup.procs", "12345\n")
	require.NoError(t, p.mkdir(filepath.Join(g.Dir(), "deeper"))) // code can make groups in its own
	require.NoError(t, g.Remove(t.Context()))
	require.NoDirExists(t, g.Dir())
	require.NoError(t, g.Remove(t.Context()))

	other, err := tree.New(Limits{})
	require.NoError(t, err)
	require.NoError(t, tree.Close(t.Context()), "another host of this process has a group there")
	require.DirExists(t, tree.Dir())
	require.NoError(t, other.Remove(t.Context()))
	require.NoError(t, tree.Close(t.Context()))
	require.NoDirExists(t, tree.Dir())
	g, err = tree.New(Limits{})
	require.NoError(t, err, "the folder is made again")
	require.NoError(t, g.Remove(t.Context()))
}

// TestAGroupThatDoesNotEnd waits no longer than it may.
func TestAGroupThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	p := pretend(t, "pids\n")
	p.o.Want = []string{PIDs}
	tree, err := Open(t.Context(), p.o)
	require.NoError(t, err)
	g, err := tree.New(Limits{Tasks: 1})
	require.NoError(t, err)
	g.system.rmdir = func(path string) error { return &fs.PathError{Op: "rmdir", Path: path, Err: syscall.EBUSY} }
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, g.Remove(ctx), syscall.EBUSY)
}

func TestWhatIsMissingIsTold(t *testing.T) {
	t.Parallel()
	p := pretend(t, "pids\n")
	tree, err := Open(t.Context(), p.o)
	require.NoError(t, err)
	require.Equal(t, []string{PIDs}, tree.Controllers())
	require.Contains(t, tree.Lacking(), "has no controller memory and cpu")
	g, err := tree.New(Limits{Memory: 5, Tasks: 3})
	require.NoError(t, err)
	memory, err := os.ReadFile(filepath.Join(g.Dir(), "memory.max"))
	require.NoError(t, err)
	require.Empty(t, memory)
}

func TestTheHostMovesToALeaf(t *testing.T) {
	t.Parallel()
	p := pretend(t, "memory pids cpu\n", os.Getpid())
	// Who writes a pid into one group takes it out of the other; here it is done once.
	moved := 0
	mkdir := p.o.system.mkdir
	p.o.system.mkdir = func(path string) error {
		if filepath.Base(path) == hostLeaf {
			moved++
			defer p.write("fs/own/cgroup.procs", "")
		}
		return mkdir(path)
	}
	_, err := Open(t.Context(), p.o)
	require.NoError(t, err)
	require.Equal(t, 1, moved)

	p.write("proc/self/cgroup", "0::/slice/own/"+hostLeaf+"\n")
	tree, err := Open(t.Context(), p.o)
	require.NoError(t, err)
	require.Equal(t, p.own(), filepath.Dir(tree.Dir()), "the second host of this process, and one that it starts, share the folder above")
	require.Equal(t, 1, moved)
}

func TestUnusableGroups(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*pretended)
		want   string
	}{
		"strangers":      {func(p *pretended) { p.write("fs/own/cgroup.procs", "1\n") }, "process 1, which this one has not started"},
		"no controllers": {func(p *pretended) { p.write("fs/own/cgroup.controllers", "io\n") }, "has no controller memory and pids and cpu"},
		"version 1":      {func(p *pretended) { p.write("proc/self/cgroup", "4:memory:/x\n") }, "no group of version 2"},
		"outside":        {func(p *pretended) { p.write("proc/self/cgroup", "0::/../x\n") }, "no group of version 2"},
		"not mounted":    {func(p *pretended) { p.write("proc/self/mountinfo", "nonsense\n") }, "is not mounted here"},
		"another part":   {func(p *pretended) { p.write("proc/self/cgroup", "0::/elsewhere\n") }, "is not mounted here"},
		"no procfs":      {func(p *pretended) { require.NoError(p.t, os.RemoveAll(filepath.Join(p.root, "proc"))) }, "this system has no control groups"},
		"gone":           {func(p *pretended) { require.NoError(p.t, os.RemoveAll(p.own())) }, "no such file"},
		"cannot be changed": {func(p *pretended) {
			require.NoError(p.t, os.Remove(filepath.Join(p.own(), fileProcs)))
			require.NoError(p.t, os.Mkdir(filepath.Join(p.own(), fileProcs), 0o700))
		}, "start the host with systemd-run"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := pretend(t, "memory pids cpu\n")
			c.change(p)
			_, err := Open(t.Context(), p.o)
			var unusable *UnusableError
			require.ErrorAs(t, err, &unusable)
			require.ErrorContains(t, err, c.want)
			_, _, _, err = Check(p.o)
			require.ErrorAs(t, err, &unusable)
			entries, err := os.ReadDir(p.own())
			require.True(t, err == nil || errors.Is(err, fs.ErrNotExist))
			for _, e := range entries {
				require.NotContains(t, e.Name(), prefix, "nothing was changed")
			}
		})
	}
}

func TestLeftoversOfKilledHosts(t *testing.T) {
	t.Parallel()
	p := pretend(t, "memory pids cpu\n")
	ns := namespace(p.o.Proc)
	self, err := process.Identify(os.Getpid())
	require.NoError(t, err)
	name := func(pid int, start, ns string) string {
		return nameOf(process.Identity{PID: pid, Start: start}, ns)
	}
	left := []string{name(1<<30, "x", ns), name(os.Getpid(), "another start", ns)}
	kept := []string{name(self.PID, self.Start, ns), name(1<<30, "x", "4711"), "coppice-x-y-" + ns, hostLeaf, "other"}
	for _, n := range append(append([]string{}, left...), kept...) {
		require.NoError(t, p.mkdir(filepath.Join(p.own(), n)))
		require.NoError(t, p.mkdir(filepath.Join(p.own(), n, "1")))
		p.write("fs/own/"+n+"/1/cgroup.procs", "4242\n")
	}
	require.Len(t, Leftovers(p.o), 2)
	// cgroup.kill of a folder holds for those below it.
	rmdir := p.o.system.rmdir
	p.o.system.rmdir = func(path string) error {
		if p.read(mustRel(t, p.root, filepath.Dir(path))+"/"+fileKill) == "1" {
			if err := os.WriteFile(filepath.Join(path, fileKill), []byte("1"), 0o600); err != nil {
				return err
			}
		}
		return rmdir(path)
	}
	done, err := Clean(t.Context(), p.o)
	require.NoError(t, err)
	require.Len(t, done, 2)
	for _, n := range left {
		require.NoDirExists(t, filepath.Join(p.own(), n))
	}
	for _, n := range kept {
		require.DirExists(t, filepath.Join(p.own(), n, "1"))
	}
	require.Empty(t, Leftovers(p.o))
}

func mustRel(t *testing.T, base, path string) string {
	t.Helper()
	rel, err := filepath.Rel(base, path)
	require.NoError(t, err)
	return rel
}

func TestEscapesOfMountinfo(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{`/a\040b`: "/a b", `/\134x`: `/\x`, `/a\9`: `/a\9`, `/a\`: `/a\`, "": ""} {
		require.Equal(t, want, unescape(in), in)
	}
	dir, ok := within(`30 1 0:26 / /sys/fs/cgroup rw - cgroup2 none rw`, "/a/b", "cgroup2")
	require.True(t, ok)
	require.Equal(t, "/sys/fs/cgroup/a/b", dir)
	_, ok = within(`30 1 0:26 / /sys/fs/cgroup rw - cgroup none rw`, "/a", "cgroup2")
	require.False(t, ok)
}

func FuzzMountinfo(f *testing.F) {
	f.Add("30 1 0:26 / /sys/fs/cgroup rw - cgroup2 none rw", "/a")
	f.Add(`1 1 0:1 /a\040 /b - cgroup2 `, "/a /c")
	f.Fuzz(func(t *testing.T, line, group string) {
		if dir, ok := within(line, group, "cgroup2"); ok && dir == "" {
			t.Fatal("a group without a folder")
		}
	})
}
