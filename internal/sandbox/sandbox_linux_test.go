package sandbox

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// confined runs a shell command under rules and returns what it printed.
func confined(t *testing.T, r Rules, command string) (string, error) {
	t.Helper()
	if r.Inside() {
		r.Scratch = t.TempDir()
	}
	c, done, err := r.Wrap(Command{Path: "/bin/sh", Args: []string{"-c", command}})
	require.NoError(t, err)
	defer done()
	var out bytes.Buffer
	cmd := exec.Command(c.Path, c.Args...)
	cmd.ExtraFiles, cmd.Env = c.Files, c.Env
	cmd.Stdout, cmd.Stderr = &out, &out
	ended := make(chan error)
	go func() { // ends with the command; ended is its join
		runtime.LockOSThread() // and never unlocked: the thread is thrown away
		err := r.Confine()
		if err == nil {
			err = cmd.Run()
		}
		ended <- err
	}()
	err = <-ended
	return out.String(), err
}

func TestRungs(t *testing.T) {
	home, open := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(home, "secret"), []byte("secret"), 0o600))
	for _, l := range Levels() {
		if err := Available(l); err != nil {
			t.Logf("%s: %v", l, err)
			require.ErrorIs(t, err, ErrUnavailable)
			continue
		}
		t.Run(l.String(), func(t *testing.T) {
			require.NoError(t, Available(l))
			r := Rules{Level: l, Write: []string{open}}
			out, err := confined(t, r, "echo x > "+open+"/file && cat "+open+"/file && rm "+open+"/file && echo y > /dev/null && set -- /usr/* && test -d $1 && echo good")
			require.NoError(t, err, out)
			require.Equal(t, "x\ngood\n", out)
			out, err = confined(t, r, "cat "+home+"/secret")
			if l < Landlock {
				require.NoError(t, err)
				require.Equal(t, "secret", out)
			} else {
				require.Error(t, err)
				require.NotContains(t, out, "secret\n")
			}
			_, err = confined(t, r, "echo x > "+home+"/written")
			require.Equal(t, l < Landlock, err == nil)
			out, _ = confined(t, r, "grep -E 'NoNewPrivs|CapEff' /proc/self/status")
			if l >= Privileges && l != GVisor { // whose kernel does not tell
				require.Contains(t, out, "NoNewPrivs:\t1")
			}
			if l >= Landlock {
				require.Contains(t, out, "CapEff:\t0000000000000000")
			}
			require.NotEmpty(t, r.Describe())
		})
	}
}

func TestRulesThatCannotBeKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, bad := range []string{"relative", file, "/no/such/folder"} {
		_, err := confined(t, Rules{Level: Landlock, Write: []string{bad}}, "true")
		require.ErrorContains(t, err, bad)
	}
}

// TestWhatIsSaidOfTheNetwork: a rung that leaves the network open does not say that it closes it.
func TestWhatIsSaidOfTheNetwork(t *testing.T) {
	for _, l := range Levels()[Landlock:] {
		whole := Rules{Level: l}.Describe()
		require.Regexp(t, "network|no TCP", whole)
		require.NotRegexp(t, "network|no TCP", Rules{Level: l, Network: true}.Describe(), l)
		if l < Bubblewrap {
			require.NotRegexp(t, "network|no TCP", Rules{Level: l, Loopback: true}.Describe(), l)
		}
	}
	require.Contains(t, Rules{Level: GVisor}.Describe(), "with file system, network, IPC and processes of its own")
	require.Contains(t, Rules{Level: Bubblewrap, Network: true}.Describe(), "bubblewrap: file system and IPC of its own")
}

func TestPartsOfTheNetworkByRung(t *testing.T) {
	for _, l := range Levels() {
		part, port := Rules{Level: l, Loopback: true}.CheckNetwork(), Rules{Level: l, Loopback: true, Port: 9}.CheckNetwork()
		require.Equal(t, l < Seccomp, part != nil, "%s: %v", l, part)
		require.Equal(t, l != Seccomp && l != User || ABI() < netPorts, port != nil, "%s: %v", l, port)
		for _, err := range []error{part, port} {
			require.True(t, err == nil || errors.Is(err, ErrUnavailable))
		}
		require.NoError(t, Rules{Level: l, Network: true, Loopback: true, Port: 9}.CheckNetwork())
		require.NoError(t, Rules{Level: l}.CheckNetwork())
	}
}

func TestCovers(t *testing.T) {
	open, shut := t.TempDir(), t.TempDir()
	link := filepath.Join(shut, "link")
	require.NoError(t, os.Symlink(open, link))
	r := Rules{Level: Landlock, Write: []string{open}}
	require.True(t, r.Covers(open))
	require.True(t, r.Covers(filepath.Join(open, "below")))
	require.True(t, r.Covers(link))
	require.True(t, r.Covers("/usr/lib"))
	require.False(t, r.Covers(shut))
	require.False(t, r.Covers(open+"more"))
	require.True(t, Rules{Level: Privileges}.Covers(shut))
}

// TestChanges: where code may write, also by a link on the way, what is found says what it
// wishes.
func TestChanges(t *testing.T) {
	t.Parallel()
	open, closed := t.TempDir(), t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(open, "bin"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(closed, "tool"), nil, 0o700)) //nolint:gosec // it is a program
	require.NoError(t, os.Symlink(filepath.Join(closed, "tool"), filepath.Join(open, "bin", "tool")))
	require.NoError(t, os.Symlink(filepath.Join(open, "bin"), filepath.Join(closed, "in")))
	require.NoError(t, os.Symlink(filepath.Join(closed, "tool"), filepath.Join(closed, "same")))
	r := Rules{Level: Landlock, Write: []string{open}}
	for path, want := range map[string]bool{
		filepath.Join(open, "bin", "tool"):      true,
		filepath.Join(open, "nothing"):          true,
		filepath.Join(closed, "in", "tool"):     true,
		filepath.Join(closed, "tool"):           false,
		filepath.Join(closed, "same"):           false,
		open + "er":                             false,
		"/usr/bin/env":                          false,
		"/dev/shm/tool":                         true,
		filepath.Join(open, "..", "other"):      false,
		filepath.Join(closed, "in", "..", "no"): false,
	} {
		require.Equal(t, want, r.Changes(path), path)
	}
	require.True(t, Rules{}.Changes("/usr/bin/env"), "nothing is kept from it")
}

func TestInterpreterPaths(t *testing.T) {
	base, venv := t.TempDir(), t.TempDir()
	for _, dir := range []string{base + "/bin", venv + "/bin"} {
		require.NoError(t, os.Mkdir(dir, 0o700))
	}
	require.NoError(t, os.WriteFile(base+"/bin/python3", nil, 0o700))
	require.NoError(t, os.Symlink(base+"/bin/python3", venv+"/bin/python"))
	require.NoError(t, os.WriteFile(venv+"/pyvenv.cfg", []byte("home = /opt/other/bin\nversion = 3\n"), 0o600))
	require.Equal(t, []string{venv, base, "/opt/other"}, InterpreterPaths(venv+"/bin/python"))
}

func TestBubblewrapArguments(t *testing.T) {
	dir := t.TempDir()
	r := Rules{Level: Bubblewrap, Write: []string{dir}}
	args := r.bubblewrapArgs("/")
	require.Contains(t, args, "--unshare-net")
	at := slices.Index(args, "--bind")
	require.Equal(t, []string{"--bind", dir, dir, "--chdir", "/"}, args[at:])
	require.NotContains(t, args, "--cap-add")
	r.Users = true
	require.Contains(t, r.bubblewrapArgs("/"), "CAP_SETUID")
	r.Network = true
	require.NotContains(t, r.bubblewrapArgs("/"), "--unshare-net")
}

func TestFilesByVersion(t *testing.T) {
	for abi, bits := range map[int]int{1: 13, 2: 14, 3: 15, 4: 15, 5: 16, 7: 16, 10: 16} {
		require.Equal(t, uint64(1)<<bits-1, files(abi), abi)
	}
}
