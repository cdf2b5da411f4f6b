package handover_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/handover"
	"github.com/coppice-run/coppice/internal/process"
)

// patience bounds every wait.
const patience = 3 * time.Minute

const token = "0123456789abcdef"

// server is one that can be replaced, in this process.
type server struct {
	t     *testing.T
	o     handover.Options
	offer *handover.Offer
	l     net.Listener
	left  atomic.Int64 // how often it was asked to leave, and did
	busy  atomic.Int64 // how often it will say that it is busy
	never atomic.Bool  // it refuses to leave
}

func newServer(t *testing.T, change func(*handover.Options)) *server {
	t.Helper()
	s := &server{t: t}
	var err error
	s.l, err = net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.l.Close() })
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o700))
	s.o = handover.Options{
		Dir: dir, Token: token, Program: "v1", Needs: []string{"this/1"}, Given: handover.Given{Cwd: "/w"},
		Listeners: func() ([]*os.File, error) {
			f, err := s.l.(*net.TCPListener).File()
			return []*os.File{f}, err
		},
		Leave: func(context.Context) (*os.File, error) {
			switch {
			case s.busy.Add(-1) >= 0:
				return nil, &handover.BusyError{Reason: "a tool runs"}
			case s.never.Load():
				return nil, errors.New("the disk is full")
			}
			s.left.Add(1)
			f, err := os.CreateTemp(dir, "left-*")
			if err == nil {
				_, err = f.WriteString("what is known")
			}
			return f, err
		},
	}
	if change != nil {
		change(&s.o)
	}
	s.offer, err = handover.Begin(s.o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.offer.Close()) })
	return s
}

func (s *server) asks(change func(*handover.SuccessorOptions)) (*handover.Succession, error) {
	me, err := process.Identify(os.Getpid())
	require.NoError(s.t, err)
	o := handover.SuccessorOptions{Dir: s.o.Dir, PID: me.PID, Start: me.Start, Token: token, Program: "v2", Knows: []string{"this/1", "that/1"}}
	if change != nil {
		change(&o)
	}
	return handover.Ask(s.t.Context(), o)
}

// TestHandover: the successor gets the listener and what is known, also when the server was
// busy before, and the server learns that it serves.
func TestHandover(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	s.busy.Store(2)
	next, err := s.asks(nil)
	require.NoError(t, err)
	defer next.Close()
	require.Equal(t, handover.Given{Cwd: "/w"}, next.Given())
	require.Len(t, next.Files(), 1)
	l, err := net.FileListener(next.Files()[0])
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	require.Equal(t, s.l.Addr().String(), l.Addr().String())
	require.False(t, next.Owner())
	var told []string
	known, err := next.Take(t.Context(), func(why string) { told = append(told, why) })
	require.NoError(t, err)
	defer func() { _ = known.Close() }()
	require.Equal(t, []string{"a tool runs"}, told)
	require.True(t, next.Owner())
	data, err := io.ReadAll(io.NewSectionReader(known, 0, 1<<20))
	require.NoError(t, err)
	require.Equal(t, "what is known", string(data))
	to := <-s.offer.Gone()
	require.Equal(t, os.Getpid(), to.PID())
	_, err = s.asks(nil) // of a server that has left
	require.ErrorContains(t, err, "is about to replace it")
	next.Taken()
	require.NoError(t, to.Wait(t.Context()))
}

// TestRefused: who does not know enough, or is not who it says, is refused by name, and
// nothing moves.
func TestRefused(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	for name, tc := range map[string]struct {
		change func(*handover.SuccessorOptions)
		want   string
	}{
		"a wrong token":       {func(o *handover.SuccessorOptions) { o.Token = "fedcba9876543210" }, "the token is wrong"},
		"no token":            {func(o *handover.SuccessorOptions) { o.Token = "" }, "the token is wrong"},
		"it knows too little": {func(o *handover.SuccessorOptions) { o.Knows = []string{"this/2"} }, "it (v2) does not know this/1, which this server (v1) would leave to it: end this one, and start that"},
		"another start":       {func(o *handover.SuccessorOptions) { o.Start = "1" + o.Start }, "hears successors, and process"},
	} {
		_, err := s.asks(tc.change)
		require.ErrorContains(t, err, tc.want, name)
		var no *handover.RefusedError
		require.ErrorAs(t, err, &no, name)
		require.NotContains(t, err.Error(), token, name)
	}
	_, err := s.asks(func(o *handover.SuccessorOptions) { o.PID++ })
	require.ErrorIs(t, err, handover.ErrNone)
	_, err = s.asks(func(o *handover.SuccessorOptions) { o.Dir = t.TempDir() + "/none" })
	require.ErrorIs(t, err, handover.ErrNone)
	open := t.TempDir()
	require.NoError(t, os.Chmod(open, 0o755))
	_, err = s.asks(func(o *handover.SuccessorOptions) { o.Dir = open })
	require.ErrorContains(t, err, "others may enter")
	require.Zero(t, s.left.Load())

	unfit := newServer(t, func(o *handover.Options) { o.Refuse = func() string { return "there are 2 workspaces" } })
	_, err = unfit.asks(nil)
	require.EqualError(t, err, "the server is not replaced: there are 2 workspaces")

	s.never.Store(true)
	next, err := s.asks(nil)
	require.NoError(t, err)
	defer next.Close()
	_, err = s.asks(nil) // one at a time
	require.ErrorContains(t, err, fmt.Sprintf("process %d is about to replace it", os.Getpid()))
	_, err = next.Take(t.Context(), func(string) {})
	require.EqualError(t, err, "the server is not replaced: the disk is full")
	require.False(t, next.Owner())
	s.never.Store(false)
	require.Eventually(t, func() bool { // it hears others again
		other, err := s.asks(nil)
		if err == nil {
			other.Close()
		}
		return err == nil
	}, patience, 10*time.Millisecond)
}

// TestOtherVersions refuse each other in words that both know, also by bytes that are no
// message at all.
func TestOtherVersions(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	me, err := process.Identify(os.Getpid())
	require.NoError(t, err)
	for body, want := range map[string]string{
		fmt.Sprintf(`{"kind":"hello","version":9,"program":"v9","token":%q,"pid":%d,"start":%q,"more":[1]}`, token, me.PID, me.Start): `"reason":"it speaks version 9 of the handover (v9), and this server version 1 (v1): end this one, and start that"`,
		fmt.Sprintf(`{"kind":"hello","version":1,"token":%q,"pid":%d,"start":"1"}`, token, me.PID):                                    `"reason":"it is not the process that it says it is"`,
		`{"kind":"take"}`: `"reason":"\"take\" is no hello"`,
		`{"kind":`:        "",
		"":                "",
	} {
		conn, err := net.Dial("unix", handover.SocketFile(s.o.Dir, os.Getpid()))
		require.NoError(t, err)
		_, err = conn.Write(append([]byte{byte(len(body)), byte(len(body) >> 8), 0, 0, 0, 0, 0, 0}, body...))
		require.NoError(t, err)
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
		answer, _ := io.ReadAll(conn) // until it is closed
		require.Contains(t, string(answer), want)
		require.NotContains(t, string(answer), token)
		require.NoError(t, conn.Close())
	}
	_, err = s.asks(func(o *handover.SuccessorOptions) {})
	require.NoError(t, err)
	require.Zero(t, s.left.Load())
}

// succeed is the successor of a test, in a process of its own.
func succeed(ctx context.Context, role []string) error {
	pid, err := strconv.Atoi(role[2])
	if err != nil {
		return err
	}
	wait := func(step string) {
		_, _ = fmt.Fprintln(os.Stdout, step)
		if step == role[0] {
			select {}
		}
	}
	s, err := handover.Ask(ctx, handover.SuccessorOptions{Dir: role[1], PID: pid, Token: token, Program: "v2", Knows: []string{"this/1"}})
	if err != nil {
		return err
	}
	wait("offered")
	if _, err := s.Take(ctx, func(string) {}); err != nil {
		return err
	}
	wait("left")
	s.Taken()
	wait("mine")
	return nil
}

// TestTheSuccessorIsKilled: before it has been left to, the server goes on and hears the next
// one; after that, it learns that all is its own again, and once the other serves, that it is
// over.
func TestTheSuccessorIsKilled(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"offered", "left", "mine"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, nil)
			exe, err := os.Executable()
			require.NoError(t, err)
			cmd := exec.Command(exe)
			cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %d", roleEnv, step, s.o.Dir, os.Getpid()), "GORACE=atexit_sleep_ms=0")
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			said := bufio.NewScanner(out)
			for said.Scan() && strings.TrimSpace(said.Text()) != step {
			}
			require.Equal(t, step, said.Text())
			require.NoError(t, cmd.Process.Kill())
			_ = cmd.Wait()
			if step == "offered" {
				require.Zero(t, s.left.Load())
				require.Eventually(t, func() bool {
					next, err := s.asks(nil)
					if err == nil {
						next.Close()
					}
					return err == nil
				}, patience, 10*time.Millisecond)
				return
			}
			to := <-s.offer.Gone()
			require.Equal(t, cmd.Process.Pid, to.PID())
			err = to.Wait(t.Context())
			if step == "mine" {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, handover.ErrEnded)
			}
		})
	}
}

// TestTheServerEnds while a successor waits for it: that one owns what there is.
func TestTheServerEnds(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	s.busy.Store(1 << 30)
	next, err := s.asks(nil)
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("over")
	_, err = next.Take(ctx, func(string) { cancel(over) }) // its process is this one, which does not end
	require.ErrorIs(t, err, over)
	require.False(t, next.Owner())
	next.Close()
	require.Zero(t, s.left.Load())
}

// FuzzHello sends anything to a server.
func FuzzHello(f *testing.F) {
	f.Add([]byte{2, 0, 0, 0, 0, 0, 0, 0, '{', '}'})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		s := newServer(t, nil)
		conn, err := net.Dial("unix", handover.SocketFile(s.o.Dir, os.Getpid()))
		require.NoError(t, err)
		_, _ = conn.Write(data) // it may have been closed
		require.NoError(t, conn.Close())
		require.Zero(t, s.left.Load())
	})
}
