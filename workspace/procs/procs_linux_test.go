package procs_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/workspace/procs"
)

// shell starts a script.
func shell(t *testing.T, script string, change func(*procs.Options)) *procs.Process {
	t.Helper()
	o := procs.Options{Args: []string{"/bin/sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin", "TERM=xterm"}, Dir: t.TempDir(), Logs: t.TempDir()}
	if change != nil {
		change(&o)
	}
	p, err := procs.Start(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

func terminal(o *procs.Options) { o.Terminal = &procs.Size{Columns: 70, Rows: 20} }
func input(o *procs.Options)    { o.Input = true }

// follow reads events from a number on until want has been printed, or to the end when
// it is "". It returns the output, by kind, and the number of the last event.
func follow(t *testing.T, p *procs.Process, after uint64, want string) (map[procs.EventKind]string, uint64) {
	t.Helper()
	r, err := p.Read(after)
	require.NoError(t, err)
	defer r.Close()
	out := map[procs.EventKind]string{}
	for {
		entries, err := r.Next(t.Context())
		if errors.Is(err, io.EOF) {
			require.Empty(t, want, "it has ended with %q", out)
			return out, after
		}
		require.NoError(t, err)
		for _, entry := range entries {
			e, err := entry.Event()
			require.NoError(t, err)
			require.Equal(t, e.Seq, entry.Seq)
			if e.Kind != procs.EventGap {
				require.Equal(t, after+1, e.Seq, "no gap and nothing twice")
			}
			after = e.Seq
			out[e.Kind] += string(e.Data)
			if want != "" && strings.Contains(out[procs.EventStdout]+out[procs.EventTerminal], want) {
				return out, after
			}
		}
	}
}

func TestOutputAndExit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		script   string
		out, err string
		exit     string
	}{
		{"printf out; printf err >&2; exit 3", "out", "err", "exited with code 3"},
		{"kill -9 $$", "", "", "was ended by a signal: killed"},
		{"cat; echo $1", "\n", "", "exited with code 0"},
		{"pwd | wc -l", "1\n", "", "exited with code 0"},
	} {
		p := shell(t, c.script, nil)
		out, _ := follow(t, p, 0, "")
		require.Equal(t, c.out, out[procs.EventStdout], c.script)
		require.Equal(t, c.err, out[procs.EventStderr], c.script)
		exit, err := p.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, c.exit, exit.String())
		require.ErrorIs(t, p.Signal("TERM"), procs.ErrOver)
		_, err = p.Write(t.Context(), []byte("x"))
		require.ErrorIs(t, err, procs.ErrOver)
	}
}

func TestWhatCannotBeStarted(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {""}, {"none-such"}, {"./none"}, {"/etc/passwd"}, {"sh", "a\x00b"}} {
		_, err := procs.Start(procs.Options{Args: args, Env: []string{"PATH=/bin:.:relative"}, Dir: t.TempDir()})
		_, ok := errors.AsType[*procs.StartError](err)
		require.True(t, ok, "%q: %v", args, err)
	}
	_, err := procs.Start(procs.Options{Args: []string{"sh"}, Dir: t.TempDir()})
	require.ErrorIs(t, err, os.ErrNotExist, "no PATH")
	p := shell(t, "true", nil)
	_, err = p.Read(1 << 40)
	require.ErrorIs(t, err, procs.ErrAhead)
	require.ErrorIs(t, p.Signal("NONE"), procs.ErrSignal)
}

func TestInput(t *testing.T) {
	t.Parallel()
	p := shell(t, "while read x; do echo got $x; done; echo end", input)
	n, err := p.Write(t.Context(), []byte("a\nb"))
	require.NoError(t, err)
	require.Equal(t, 3, n)
	_, at := follow(t, p, 0, "got a\n")
	_, err = p.Write(t.Context(), []byte("c\n"))
	require.NoError(t, err)
	require.ErrorIs(t, p.Resize(procs.Size{}), procs.ErrNoTerminal)
	require.NoError(t, p.CloseInput(t.Context()))
	out, _ := follow(t, p, at, "")
	require.Equal(t, "got bc\nend\n", out[procs.EventStdout])

	// A process that takes nothing holds its writer, for as long as that one likes.
	stuck := shell(t, "exec sleep 600", input)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	n, err = stuck.Write(ctx, make([]byte, 1<<20))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, n, 1<<20)
	require.ErrorIs(t, shell(t, "sleep 600", nil).CloseInput(t.Context()), procs.ErrNoInput)
}

// TestAReaderLosesNothing: a process prints far more than is kept, to a reader who
// leaves and comes back.
func TestAReaderLosesNothing(t *testing.T) {
	t.Parallel()
	const lines = 100000
	p := shell(t, "i=0; while [ $i -lt 100000 ]; do echo line $i; i=$((i+1)); done", func(o *procs.Options) { o.Keep = 64 << 10 })
	r, err := p.Read(0)
	require.NoError(t, err)
	var all bytes.Buffer
	after, rounds := uint64(0), 0
	for {
		entries, err := r.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		for i, entry := range entries {
			e, err := entry.Event()
			require.NoError(t, err)
			require.NotEqual(t, procs.EventGap, e.Kind)
			require.Equal(t, after+1, e.Seq)
			after = e.Seq
			all.Write(e.Data)
			if rounds++; rounds%50 == 0 && i < len(entries)-1 { // it leaves with what it had not looked at yet
				again, err := p.Read(after)
				require.NoError(t, err)
				r.Close()
				r = again
				break
			}
		}
	}
	r.Close()
	require.Equal(t, lines, strings.Count(all.String(), "\n"))
	require.True(t, strings.HasPrefix(all.String(), "line 0\nline 1\n"))
	require.True(t, strings.HasSuffix(all.String(), "line 99999\n"))
}

func TestWithoutAReaderTheNewestIsKept(t *testing.T) {
	t.Parallel()
	p := shell(t, "head -c 3000000 /dev/zero; echo; echo last", func(o *procs.Options) { o.Keep = 400 << 10 })
	_, err := p.Wait(t.Context())
	require.NoError(t, err)
	out, _ := follow(t, p, 0, "")
	require.Contains(t, out, procs.EventGap)
	require.True(t, strings.HasSuffix(out[procs.EventStdout], "\nlast\n"))
	require.Less(t, len(out[procs.EventStdout]), 400<<10)
	require.Greater(t, len(out[procs.EventStdout]), 50<<10)
}

func TestSignalsReachTheGroup(t *testing.T) {
	t.Parallel()
	p := shell(t, "trap 'echo term; exit 4' TERM; echo ready; sleep 600 & wait", nil)
	follow(t, p, 0, "ready")
	require.NoError(t, p.Signal("SIGTERM"))
	exit, err := p.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, 4, exit.Code)

	stubborn := shell(t, "trap '' TERM; echo ready; while true; do sleep 1; done", nil)
	follow(t, stubborn, 0, "ready")
	require.NoError(t, stubborn.Stop(t.Context(), "the workspace has ended", 50*time.Millisecond))
	exit, _ = stubborn.Exit()
	require.Equal(t, "was ended by a signal: killed (the workspace has ended)", exit.String())
}

func TestATerminal(t *testing.T) {
	t.Parallel()
	p := shell(t, "stty size; trap 'stty size' WINCH; tty; echo ready; while true; do sleep 0.05; done", terminal)
	out, at := follow(t, p, 0, "ready")
	require.Contains(t, out[procs.EventTerminal], "20 70")
	require.Contains(t, out[procs.EventTerminal], "/dev/pts/")
	require.NoError(t, p.Resize(procs.Size{Columns: 100, Rows: 30}))
	_, at = follow(t, p, at, "30 100")
	_, err := p.Write(t.Context(), []byte{3}) // Ctrl-C, whose echo is lost where the end of the shell comes before it
	require.NoError(t, err)
	follow(t, p, at, "")
	exit, err := p.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, "interrupt", exit.Signal)

	cat := shell(t, "cat", terminal)
	_, err = cat.Write(t.Context(), []byte("hello\n"))
	require.NoError(t, err)
	follow(t, cat, 0, "hello\r\nhello\r\n")
	require.NoError(t, cat.CloseInput(t.Context()))
	exit, err = cat.Wait(t.Context())
	require.NoError(t, err)
	require.Zero(t, exit.Code)
}

// TestADaemonHoldsNothing: what a process leaves behind with its output open does not
// keep its end from being told.
func TestADaemonHoldsNothing(t *testing.T) {
	t.Parallel()
	p := shell(t, "setsid sleep 30 & echo started", nil)
	begin := time.Now()
	_, err := p.Wait(t.Context())
	require.NoError(t, err)
	require.Less(t, time.Since(begin), 25*time.Second)
}
