package cgroup

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/process"
)

// pretendLegacy is a machine with version 1, and version 2 beside it, without controllers.
func pretendLegacy(t *testing.T) *pretended {
	t.Helper()
	p := pretend(t, "\n")
	p.write("proc/self/cgroup", "5:memory:/own\n4:pids:/own\n2:cpu,cpuacct:/\n1:name=systemd:/x\n0::/slice/own\n")
	var mounts strings.Builder
	mounts.WriteString(p.read("proc/self/mountinfo"))
	for name, at := range map[string]string{"memory": "memory/own", "pids": "pids/own", "cpu,cpuacct": "cpu"} {
		dir := filepath.Join(p.root, "v1", strings.Split(at, "/")[0])
		mounts.WriteString("40 1 0:30 / " + strings.ReplaceAll(dir, " ", `\040`) + " rw - cgroup cgroup rw," + name + "\n")
		require.NoError(t, os.MkdirAll(filepath.Join(p.root, "v1", filepath.Dir(at)), 0o700))
		require.NoError(t, p.mkdirLegacy(filepath.Join(p.root, "v1", at)))
	}
	p.write("proc/self/mountinfo", mounts.String())
	p.o.system.mkdir = p.mkdirLegacy
	return p
}

// mkdirLegacy makes a group with the files of all controllers.
func (p *pretended) mkdirLegacy(path string) error {
	err := os.Mkdir(path, 0o700)
	for _, name := range []string{
		fileProcs, "memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat", "memory.oom_control",
		"pids.max", "pids.events", "cpu.cfs_period_us", "cpu.cfs_quota_us",
	} {
		if err == nil {
			err = os.WriteFile(filepath.Join(path, name), nil, 0o600)
		}
	}
	return err
}

func TestALegacyGroupHasItsLimits(t *testing.T) {
	t.Parallel()
	p := pretendLegacy(t)
	tree, err := Open(t.Context(), p.o)
	require.NoError(t, err)
	require.Equal(t, []string{PIDs, Memory, CPU}, tree.Controllers())
	require.Empty(t, tree.Lacking())
	require.Equal(t, filepath.Join(p.root, "v1/pids/own"), filepath.Dir(tree.Dir()))

	g, err := tree.New(Limits{Memory: 1 << 20, Tasks: 7, Processors: 1.5})
	require.NoError(t, err)
	require.True(t, g.Legacy())
	rel := filepath.Join(filepath.Base(tree.Dir()), filepath.Base(g.Dir()))
	pids, memory, cpu := "v1/pids/own/"+rel, "v1/memory/own/"+rel, "v1/cpu/"+rel
	require.Equal(t, "7", p.read(pids+"/pids.max"))
	require.Empty(t, p.read(pids+"/memory.limit_in_bytes"), "it is another hierarchy's")
	require.Equal(t, "1048576", p.read(memory+"/memory.limit_in_bytes"))
	require.Equal(t, "100000", p.read(cpu+"/cpu.cfs_period_us"))
	require.Equal(t, "150000", p.read(cpu+"/cpu.cfs_quota_us"))

	require.Equal(t, Usage{Memory: -1}, g.Usage())
	p.write(memory+"/memory.usage_in_bytes", "5000\n")
	p.write(memory+"/memory.stat", "rss 4000\ntotal_inactive_file 900\n")
	p.write(memory+"/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
	p.write(pids+"/pids.events", "max 4\n")
	require.Equal(t, Usage{Memory: 4100, Killed: 3, Refused: 4}, g.Usage())

	require.NoError(t, g.Take(4711))
	for _, dir := range []string{pids, memory, cpu} {
		require.Equal(t, "4711", p.read(dir+"/cgroup.procs"))
		p.write(dir+"/cgroup.procs", "")
	}
	require.NoError(t, g.Remove(t.Context()))
	require.NoError(t, tree.Close(t.Context()))
	for _, dir := range []string{pids, memory, cpu} {
		require.NoDirExists(t, filepath.Dir(filepath.Join(p.root, dir)))
	}
}

// TestWhatEndsSingleProcessesIsLeftOut for those who want whole groups ended.
func TestWhatEndsSingleProcessesIsLeftOut(t *testing.T) {
	t.Parallel()
	p := pretendLegacy(t)
	p.o.Whole = true
	tree, err := Open(t.Context(), p.o)
	require.NoError(t, err)
	require.Equal(t, []string{PIDs, CPU}, tree.Controllers())
	require.Contains(t, tree.Lacking(), "a limit of memory holds for each process by itself")
	p.o.Want = []string{Memory}
	_, err = Open(t.Context(), p.o)
	var unusable *UnusableError
	require.ErrorAs(t, err, &unusable)
	require.Contains(t, unusable.Error(), "has no controller memory")
}

// TestLegacyLeftovers are found in all hierarchies.
func TestLegacyLeftovers(t *testing.T) {
	t.Parallel()
	p := pretendLegacy(t)
	name := prefix + strconv.Itoa(1<<30) + "-x-" + namespace(p.o.Proc)
	for _, base := range []string{"v1/pids/own", "v1/memory/own", "v1/cpu", "fs/own"} {
		require.NoError(t, p.mkdirLegacy(filepath.Join(p.root, base, name)))
	}
	p.o.Want = nil
	require.Len(t, Leftovers(p.o), 4)
	done, err := Clean(t.Context(), p.o)
	require.NoError(t, err)
	require.Len(t, done, 4)
	require.Empty(t, Leftovers(p.o))
}

// realLegacy opens a tree on this machine, nil where there is no version 1 that may be used.
func realLegacy(t *testing.T, o Options) *Tree {
	t.Helper()
	if p, err := find(o); err != nil || len(p.legacy) == 0 || p.lacking != "" {
		t.Logf("without groups of version 1 here: %v %s", err, p.lacking)
		return nil
	}
	tree, err := Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tree.Close(t.Context())) })
	return tree
}

// TestRealLegacyGroups has the system refuse processes, and end one for its memory.
func TestRealLegacyGroups(t *testing.T) {
	t.Parallel()
	tree := realLegacy(t, Options{Want: []string{Memory, PIDs, CPU}})
	if tree == nil {
		return
	}
	g, err := tree.New(Limits{Memory: 32 << 20, Tasks: 8, Processors: 0.02}) // less than it gets on a busy machine
	require.NoError(t, err)
	join, err := g.Join()
	require.NoError(t, err)
	require.Len(t, join, 3)
	run := func(code string) string {
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", "echo 0 >&3; echo 0 >&4; echo 0 >&5; exec 3>&- 4>&- 5>&-; "+code)
		cmd.ExtraFiles = join
		out, _ := cmd.CombinedOutput() // how it ended is told by what it printed
		return string(out)
	}
	require.Contains(t, run("while [ $(cut -c-12 /proc/self/stat | wc -l) = 1 ]; do i=$((i+1)); [ $i -gt 20 ] && break; done; echo over"), "over")
	require.Positive(t, Throttled(g.dirs[2]), "a fiftieth of a processor")
	require.Contains(t, run("for i in 1 2 3 4 5 6 7 8 9 10; do setsid sleep 1000 >/dev/null 2>&1 & done"), "fork")
	require.Positive(t, g.Usage().Refused)
	in, err := g.Members()
	require.NoError(t, err)
	require.NotEmpty(t, in, "what has left its session is there")
	spared := in[0]
	g.EndSome(t.Context(), func(pids []int) []process.Identity {
		shut, err := os.ReadFile(filepath.Join(g.Dir(), filePIDs))
		require.NoError(t, err)
		require.Equal(t, "0\n", string(shut), "nothing starts meanwhile")
		var ids []process.Identity
		for _, pid := range pids {
			if id, err := process.Identify(pid); err == nil && pid != spared {
				ids = append(ids, id)
			}
		}
		return ids
	})
	in, err = g.Members()
	require.NoError(t, err)
	require.Equal(t, []int{spared}, in)
	g.End(t.Context())
	require.Eventually(t, func() bool { in, err = g.Members(); return err == nil && len(in) == 0 }, waitFor, tick)

	most, err := os.ReadFile(filepath.Join(g.Dir(), filePIDs))
	require.NoError(t, err)
	require.Equal(t, "8\n", string(most), "what comes next has the same limit")
	require.NoError(t, g.Remove(t.Context()))
	if g, err = tree.New(Limits{Memory: math.MaxInt64, Tasks: math.MaxInt, Processors: math.MaxFloat64}); err == nil {
		err = g.Remove(t.Context()) // more than the system has is as good as no limit
	}
	require.NoError(t, err)
	if g, err = tree.New(Limits{Memory: 32 << 20}); err == nil {
		for _, f := range join {
			require.NoError(t, f.Close())
		}
		join, err = g.Join()
	}
	require.NoError(t, err)
	require.Contains(t, run("tail < /dev/zero; echo $?"), "137")
	require.Positive(t, g.Usage().Killed)
	for _, f := range join {
		require.NoError(t, f.Close())
	}
	require.NoError(t, g.Remove(t.Context()))
}
