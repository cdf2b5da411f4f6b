package sandbox

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// described returns what a sandbox for a command is said to be like.
func described(t *testing.T, r Rules, c Command) (ociSpec, Command) {
	t.Helper()
	made, err := r.bundle("/somewhere/runsc", c)
	require.NoError(t, err)
	at := slices.Index(made.Args, "-bundle")
	data, err := os.ReadFile(filepath.Join(made.Args[at+1], "config.json"))
	require.NoError(t, err)
	var spec ociSpec
	require.NoError(t, json.Unmarshal(data, &spec))
	return spec, made
}

func TestASandboxIsDescribed(t *testing.T) {
	open, more, scratch := t.TempDir(), t.TempDir(), t.TempDir()
	file := filepath.Join(more, "file")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	r := Rules{Level: GVisor, Write: []string{open}, Read: []string{file, "/no/such/file"}, Scratch: scratch}
	spec, made := described(t, r, Command{
		Path: "/usr/bin/env", Args: []string{"a", "b"}, Dir: open, Env: []string{"TOKEN=secret"}, Terminal: true, Bounds: Bounds{Files: 9, FileSize: 8},
	})
	require.Equal(t, "/somewhere/runsc", made.Path)
	require.Contains(t, made.Args, "--network=none")
	for _, word := range slices.Concat(made.Args, made.Env) {
		require.NotContains(t, word, "secret", "the environment is for the inside alone")
	}
	require.Equal(t, []string{"/usr/bin/env", "a", "b"}, spec.Process.Args)
	require.Equal(t, []string{"TOKEN=secret"}, spec.Process.Env)
	require.Equal(t, open, spec.Process.Cwd)
	require.True(t, spec.Process.None)
	require.True(t, spec.Process.Terminal)
	require.True(t, spec.Root.Readonly)
	require.Equal(t, []ociRlimit{{"RLIMIT_NOFILE", 9, 9}, {"RLIMIT_FSIZE", 8, 8}}, spec.Process.Limits)
	at := func(path string) *ociMount {
		for _, m := range slices.Backward(spec.Mounts) { // the last is on top
			if m.Destination == path {
				return &m
			}
		}
		return nil
	}
	require.Equal(t, []string{"rbind", "rw"}, at(open).Options)
	require.Equal(t, []string{"rbind", "ro"}, at(file).Options)
	require.Equal(t, []string{"rbind", "ro"}, at("/usr").Options)
	require.Equal(t, "tmpfs", at(shared).Type, "its shared memory is its own")
	require.Equal(t, "proc", at("/proc").Type)
	for _, path := range []string{"/no/such/file", more, "/root", "/home", "/tmp", "/var"} {
		require.Nil(t, at(path), path)
	}
	if closed := surveyed.of("/etc").closed; os.Geteuid() == 0 && len(closed) > 0 {
		require.NotEqual(t, closed[0], at(closed[0]).Source, "what others may not read is covered")
	}
	r.Network = true
	spec, made = described(t, r, Command{Path: "/usr/bin/env"})
	require.Contains(t, made.Args, "--network=host")
	require.NotContains(t, spec.Linux.Namespaces, ociNamespace{"network"})
	require.Equal(t, "/", spec.Process.Cwd)
}

// TestNoPlaceHasTwoMounts: of two, runsc takes whichever it likes, and one of them can be written.
func TestNoPlaceHasTwoMounts(t *testing.T) {
	open, more := t.TempDir(), t.TempDir()
	within := filepath.Join(open, "within")
	require.NoError(t, os.Mkdir(within, 0o700))
	seen := map[string]string{}
	for _, m := range (Rules{Level: GVisor, Write: []string{open + "/", within, open}, Read: []string{open, within, more, more + "/"}}).mounts("/nothing") {
		require.NotContains(t, seen, m.Destination)
		seen[m.Destination] = strings.Join(m.Options, ",")
	}
	require.Equal(t, "rbind,rw", seen[open])
	require.Equal(t, "rbind,rw", seen[within])
	require.Equal(t, "rbind,ro", seen[more])
	for _, m := range (Rules{Level: GVisor, Write: []string{open}, Read: []string{within}}).mounts("/nothing") {
		require.NotEqual(t, within, m.Destination, "what lies in a folder that can be written can be, too")
	}
}

// TestCount asks the program that runs a sandbox what is in it.
func TestCount(t *testing.T) {
	runsc := filepath.Join(t.TempDir(), "runsc")
	script := "#!/bin/sh\n[ \"$*\" = '--root state ps -format=json coppice-x' ] || exit 3\necho '[{\"pid\":1},{\"pid\":7}]'\n"
	require.NoError(t, os.WriteFile(runsc, []byte(script), 0o700)) //nolint:gosec // it is run
	n, err := Count(t.Context(), []string{runsc, "--root", "state", "run", "-bundle", "dir", "coppice-x"})
	require.NoError(t, err)
	require.Equal(t, 2, n)
	_, err = Count(t.Context(), []string{runsc, "--root", "elsewhere", "run", "-bundle", "dir", "coppice-x"})
	require.ErrorContains(t, err, "exit status 3")
	_, err = Count(t.Context(), []string{"/bin/sh", "-c", "x"})
	require.ErrorContains(t, err, "does not run one")
}

// TestWhatIsNamedInAClosedFolderIsOpen: an interpreter below a folder that others may not read.
func TestWhatIsNamedInAClosedFolderIsOpen(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("for other users than root the system itself does that")
		return
	}
	dir, err := os.MkdirTemp("/opt", "coppice-closed-")
	require.NoError(t, err)
	defer func() { require.NoError(t, os.RemoveAll(dir)) }()
	named := filepath.Join(dir, "python")
	require.NoError(t, os.Mkdir(named, 0o755)) //nolint:gosec // it is the folder above that is closed
	surveyed.mu.Lock()
	surveyed.all = nil // it may have been looked at before
	surveyed.mu.Unlock()
	mounts := Rules{Level: GVisor, Read: []string{named}}.mounts("/nothing")
	is := func(path, kind string) func(ociMount) bool {
		return func(m ociMount) bool { return m.Destination == path && m.Type == kind }
	}
	cover, over := slices.IndexFunc(mounts, is(dir, "tmpfs")), slices.IndexFunc(mounts, is(named, "bind"))
	require.Positive(t, cover, "%+v", mounts)
	require.Greater(t, over, cover)
}

func TestWhatASandboxDoesNotTake(t *testing.T) {
	_, err := Rules{Level: GVisor, Scratch: t.TempDir()}.bundle("runsc", Command{Path: "/bin/sh", Files: []*os.File{os.Stdin}})
	require.ErrorContains(t, err, "no descriptors but the standard ones")
	_, err = Rules{Level: GVisor}.bundle("runsc", Command{Path: "/bin/sh"})
	require.ErrorContains(t, err, "needs a folder")
}

// TestAProgramThatMakesNoSandbox: what is on PATH as runsc and fails is told with what it says.
func TestAProgramThatMakesNoSandbox(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	require.ErrorContains(t, Available(GVisor), "install the package runsc")
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	require.NoError(t, os.WriteFile(filepath.Join(bin, "runsc"), []byte("#!/bin/sh\necho no namespaces for you >&2\nexit 3\n"), 0o700)) //nolint:gosec // it is run
	err := Available(GVisor)
	require.ErrorIs(t, err, ErrUnavailable)
	require.ErrorContains(t, err, "cannot make a sandbox here: exit status 3: no namespaces for you")
	require.Less(t, AtMost(GVisor), GVisor)
}
