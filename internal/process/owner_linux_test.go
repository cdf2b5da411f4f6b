package process_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/test/testpython"
)

// owner returns one that is closed with the test.
func owner(t *testing.T) *process.Owner {
	t.Helper()
	var o process.Owner
	o.Use(testpython.Path(t))
	t.Cleanup(func() { require.NoError(t, o.Close(context.Background())) })
	return &o
}

// shell is a script as a child of an owner.
func shell(o *process.Owner, script string) process.Options {
	return process.Options{Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=" + os.Getenv("PATH"), "A=1"}, Owner: o, Stdout: process.NewRing(process.RingOptions{})}
}

// daemons starts programs in every way that leaves a process group, and tells their
// pids: setsid, setsid of a child whose parent ends at once, and that twice.
const daemons = `
setsid sh -c 'echo $$; exec sleep 600' &
(setsid sh -c 'echo $$; exec sleep 600' &)
(setsid sh -c '(env -i setsid sh -c "echo \$\$; trap \"\" TERM HUP INT; exec sleep 600" &)' &)
nohup sh -c 'echo $$; exec sleep 600' 2>/dev/null &
`

// tell waits for the identities of the daemons, those first that have left the group.
func tell(t *testing.T, r *process.Ring) []process.Identity {
	t.Helper()
	var all, member []process.Identity
	for n := 1; len(all)+len(member) < 4; n++ {
		text := line(t, r, n)
		pid, err := strconv.Atoi(text)
		require.NoError(t, err)
		id, err := process.Identify(pid)
		require.NoError(t, err)
		if group, err := syscall.Getpgid(pid); err == nil && group != pid {
			member = append(member, id)
		} else {
			all = append(all, id)
		}
	}
	return append(all, member...)
}

func TestAChildOfAnOwner(t *testing.T) {
	t.Parallel()
	own := owner(t)
	for _, tt := range []struct {
		name, script string
		want         error
		says         string
	}{
		{"prints and ends", "echo $A; echo $PPID >/dev/null; pwd", nil, "1\n/usr\n"},
		{"its exit code", "exit 3", &process.ExitError{Code: 3}, ""},
		{"a signal", "kill -KILL $$", &process.ExitError{Code: -1, Signal: 9, Name: "killed"}, ""},
		{"signals are as ever", "sh -c 'kill -PIPE $$'; echo $?; sh -c 'kill -TERM $$'; echo $?; sh -c 'kill -INT $$'; echo $?", nil, "141\n143\n130\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := shell(own, tt.script)
			o.Dir = "/usr"
			p := start(t, o)
			ended(t, p)
			require.Equal(t, tt.want, p.Err())
			require.Equal(t, tt.says, o.Stdout.String())
			require.ErrorIs(t, p.Signal(syscall.SIGTERM), os.ErrProcessDone)
			require.NoError(t, p.Stop(t.Context(), process.StopOptions{}))
		})
	}
	t.Run("what cannot be started", func(t *testing.T) {
		t.Parallel()
		_, err := process.Start(process.Options{Path: "/no/such/program", Owner: own})
		require.ErrorIs(t, err, os.ErrNotExist)
		_, err = process.Start(process.Options{Path: "/bin/sh", Dir: "/no/such/folder", Owner: own})
		require.ErrorIs(t, err, os.ErrNotExist)
		_, err = process.Start(process.Options{Path: "/bin/sh", Args: []string{"-c", "\x00"}, Owner: own})
		require.ErrorIs(t, err, syscall.EINVAL)
	})
	t.Run("descriptors", func(t *testing.T) {
		t.Parallel()
		in, inW, err := os.Pipe()
		require.NoError(t, err)
		r, w, err := os.Pipe()
		require.NoError(t, err)
		o := shell(own, "read x; echo got $x; echo more >&2; echo extra >&3; ls /proc/self/fd | grep -c '^[0-9]$'")
		o.Stdin, o.Stderr, o.ExtraFiles = in, o.Stdout, []*os.File{w}
		p := start(t, o)
		require.NoError(t, w.Close())
		_, err = inW.WriteString("it\n")
		require.NoError(t, err)
		ended(t, p)
		require.Equal(t, "got it\nmore\n", strings.Join(strings.SplitAfter(o.Stdout.String(), "\n")[:2], ""))
		require.Equal(t, []string{"5"}, o.Stdout.Tail(1), "0 to 3, and the one that ls reads with")
		text, err := bufio.NewReader(r).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "extra\n", text)
		require.NoError(t, r.Close())
		require.NoError(t, in.Close())
		require.NoError(t, inW.Close())
	})
	t.Run("a long environment", func(t *testing.T) {
		t.Parallel()
		o := shell(own, "echo ${#B}; env | grep -c ^C")
		o.Env = append(o.Env, "B="+strings.Repeat("b", 100<<10))
		for n := range 300 {
			o.Env = append(o.Env, fmt.Sprintf("C%d=%s", n, strings.Repeat("c", 1000)))
		}
		ended(t, start(t, o))
		require.Equal(t, "102400\n300\n", o.Stdout.String())
	})
	t.Run("it is stopped with its group", func(t *testing.T) {
		t.Parallel()
		o := child("parent waits")
		o.Owner, o.Stdout = own, process.NewRing(process.RingOptions{})
		p := start(t, o)
		member := identity(t, object(t, o.Stdout))
		require.NoError(t, p.Stop(t.Context(), process.StopOptions{}))
		gone(t, member)
	})
	t.Run("its group ends with it", func(t *testing.T) {
		t.Parallel()
		o := child("parent exits")
		o.Owner, o.Stdout = own, process.NewRing(process.RingOptions{})
		p := start(t, o)
		ended(t, p)
		gone(t, identity(t, object(t, o.Stdout)))
	})
}

func TestTheEndOfAnOwnerEndsWhatDescendsFromIt(t *testing.T) {
	t.Parallel()
	var own process.Owner
	own.Use(testpython.Path(t))
	o := shell(&own, daemons+"wait")
	o.Stdout = process.NewRing(process.RingOptions{})
	p := start(t, o)
	all := tell(t, o.Stdout)
	require.NoError(t, p.Stop(t.Context(), process.StopOptions{Grace: -1}))
	for _, id := range all[:3] {
		require.True(t, process.Alive(id), "it is in no one's group, and its owner lives")
	}
	require.NoError(t, own.Close(t.Context()))
	for _, id := range all {
		require.False(t, process.Alive(id))
	}
	require.NoError(t, own.Close(t.Context()))
}

// TestAConfinedChildOfAnOwner has an owner of its own, under the same rules.
func TestAConfinedChildOfAnOwner(t *testing.T) {
	t.Parallel()
	own := owner(t)
	o := shell(own, "grep NoNewPrivs /proc/$PPID/status /proc/self/status; "+daemons+" wait")
	o.Stdout = process.NewRing(process.RingOptions{})
	o.Confine = noNewPrivs
	p := start(t, o)
	line(t, o.Stdout, 6)
	require.Contains(t, line(t, o.Stdout, 1), "1")
	require.Contains(t, line(t, o.Stdout, 2), "1")
	require.NoError(t, p.Stop(t.Context(), process.StopOptions{Grace: -1}))
	var owners []string
	for _, rules := range []string{"a", "a", "b", ""} {
		c := shell(own, "echo $PPID; grep -q 'NoNewPrivs:.1' /proc/self/status")
		c.Confine, c.Confined = noNewPrivs, rules
		p := start(t, c)
		ended(t, p)
		require.NoError(t, p.Err())
		owners = append(owners, c.Stdout.Tail(1)[0])
	}
	require.Equal(t, owners[0], owners[1], "confined alike")
	require.NotEqual(t, owners[0], owners[2])
	require.NotEqual(t, owners[2], owners[3])
	q := shell(own, "grep NoNewPrivs /proc/self/status")
	ended(t, start(t, q))
	require.Contains(t, q.Stdout.String(), "0")
}

// TestAnOwnerThatIsStopped is continued when it has something to do.
func TestAnOwnerThatIsStopped(t *testing.T) {
	t.Parallel()
	own := owner(t)
	o := shell(own, "echo $PPID; read x; exit 4")
	r, w, err := os.Pipe()
	require.NoError(t, err)
	o.Stdin = r
	p := start(t, o)
	pid, err := strconv.Atoi(line(t, o.Stdout, 1))
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	q := shell(own, "exit 5")
	second := start(t, q)
	ended(t, second)
	require.Equal(t, &process.ExitError{Code: 5}, second.Err())
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	require.NoError(t, w.Close())
	require.NoError(t, r.Close())
	ended(t, p)
	require.Equal(t, &process.ExitError{Code: 4}, p.Err())
}

// TestAnOwnerThatIsKilled takes its children with it, and is replaced. What had left
// their groups stays the owner's, which is two processes.
func TestAnOwnerThatIsKilled(t *testing.T) {
	t.Parallel()
	var own process.Owner
	own.Use(testpython.Path(t))
	o := shell(&own, daemons+"wait")
	p := start(t, o)
	all := tell(t, o.Stdout)
	require.NoError(t, syscall.Kill(parentOf(p.PID()), syscall.SIGKILL))
	ended(t, p)
	require.Equal(t, &process.ExitError{Code: -1, Signal: 9, Name: "killed"}, p.Err())
	gone(t, all[3])
	for _, id := range all[:3] {
		require.True(t, process.Alive(id))
	}
	q := shell(&own, daemons+"wait")
	second := start(t, q)
	all = append(all, tell(t, q.Stdout)...)
	worker := parentOf(second.PID())
	require.NoError(t, syscall.Kill(parentOf(worker), syscall.SIGKILL), "the one that guards")
	r := shell(&own, "echo $PPID")
	ended(t, start(t, r))
	require.Equal(t, strconv.Itoa(worker), r.Stdout.Tail(1)[0], "the one that works goes on")
	require.NoError(t, second.Stop(t.Context(), process.StopOptions{Grace: -1}))
	require.NoError(t, own.Close(t.Context()))
	for _, id := range all {
		require.False(t, process.Alive(id), "%v", id)
	}
}

// TestWithoutAnInterpreter children start as without an owner.
func TestWithoutAnInterpreter(t *testing.T) {
	t.Parallel()
	for name, python := range map[string]string{"none": "", "missing": "/no/such/python", "another program": "/bin/true"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var own process.Owner
			own.Ask(func(context.Context) string { return python })
			for range 2 {
				o := shell(&own, "echo $PPID")
				p := start(t, o)
				ended(t, p)
				require.NoError(t, p.Err())
				require.Equal(t, strconv.Itoa(os.Getpid()), o.Stdout.Tail(1)[0])
			}
			require.NoError(t, own.Close(t.Context()))
		})
	}
}

// TestWhatAKilledHostHasOwned ends with it, whatever it did to escape.
func TestWhatAKilledHostHasOwned(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"nothing", "the one that works", "the one that guards", "both"} {
		t.Run("killed before: "+first, func(t *testing.T) {
			t.Parallel()
			killHost(t, first)
		})
	}
}

func killHost(t *testing.T, first string) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = []string{roleEnv + "=owner " + testpython.Path(t), quickExit, "PATH=" + os.Getenv("PATH")}
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	text, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	var all []process.Identity
	require.NoError(t, json.Unmarshal([]byte(text), &all))
	require.Len(t, all, 6)
	for _, id := range all {
		require.True(t, process.Alive(id))
	}
	switch worker := all[1]; first {
	case "the one that works":
		require.NoError(t, syscall.Kill(worker.PID, syscall.SIGKILL))
		gone(t, worker)
	case "the one that guards":
		require.NoError(t, syscall.Kill(parentOf(worker.PID), syscall.SIGKILL))
	case "both":
		require.NoError(t, syscall.Kill(parentOf(worker.PID), syscall.SIGKILL))
		require.NoError(t, syscall.Kill(worker.PID, syscall.SIGKILL))
		heir(t, cmd.Process.Pid)
	}
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	for _, id := range all {
		gone(t, id)
	}
}

// TestWhatOthersHoldOpen: while somebody has the descriptors by which an owner knows its
// host, what is below it lives on without that; in order it ends with its host.
func TestWhatOthersHoldOpen(t *testing.T) {
	var held []*os.File
	o := &process.Owner{}
	o.Use(testpython.Path(t))
	o.Outlive(func(files []*os.File) error {
		for _, f := range files {
			fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
			require.NoError(t, err)
			held = append(held, os.NewFile(uintptr(fd), f.Name()))
		}
		return nil
	})
	opt := child("wait")
	opt.Owner = o
	p, err := process.Start(opt)
	require.NoError(t, err)
	require.Len(t, held, 2)
	require.True(t, process.Alive(p.Identity()))
	require.NoError(t, o.Close(t.Context()))
	<-p.Done()
	for _, f := range held {
		require.NoError(t, f.Close())
	}

	refusing := &process.Owner{}
	refusing.Use(testpython.Path(t))
	refusing.Outlive(func([]*os.File) error { return errors.New("no room") })
	opt.Owner = refusing
	p, err = process.Start(opt)
	require.NoError(t, err)
	require.NoError(t, p.Stop(t.Context(), process.StopOptions{Grace: -1}))
	require.NoError(t, refusing.Close(t.Context()))
}
