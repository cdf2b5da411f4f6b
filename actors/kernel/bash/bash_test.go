package bash_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/actors/kernel/bash"
	"github.com/coppice-run/coppice/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// printed collects what a script prints.
type printed struct {
	mu sync.Mutex
	strings.Builder
}

func (p *printed) emit(_ context.Context, e messages.Event) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.WriteString(e.(messages.Stream).Text)
	return nil
}

func (p *printed) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.String()
}

func start(t *testing.T, env ...string) kernel.Interpreter {
	t.Helper()
	b := bash.New(bash.Options{Env: append([]string{"PATH=" + os.Getenv("PATH")}, env...)})
	i, err := b.Start(t.Context(), kernel.StartOptions{Key: messages.SessionKey{Session: "s", Cwd: t.TempDir()}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, i.Close(context.Background())) })
	return i
}

func run(t *testing.T, i kernel.Interpreter, script string) (kernel.CellReply, string) {
	t.Helper()
	var p printed
	reply, err := i.Execute(t.Context(), kernel.CellRequest{Code: script}, p.emit)
	require.NoError(t, err)
	return reply, p.text()
}

func TestScripts(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, script, prints string
		code                 int
	}{
		{"prints", "echo out; echo err >&2; echo out", "out\nerr\nout\n", 0},
		{"fails", "exit 3", "", 3},
		{"is killed", "kill -KILL $$", "", 137},
		{"is not a command", "no-such-command-here 2>/dev/null", "", 127},
		{"has no input", "cat; echo end", "end\n", 0},
		{"is of several lines", "x=1\nfor i in 1 2; do echo $i; done", "1\n2\n", 0},
		{"leaves something behind", "sleep 600 & echo gone", "gone\n", 0},
		{"is empty", "", "", 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			reply, text := run(t, start(t), row.script)
			require.Equal(t, row.prints, text)
			require.Equal(t, row.code, *reply.ExitCode)
			require.Equal(t, row.code == 0, reply.OK)
			require.Nil(t, reply.Error)
		})
	}
}

func TestSecretsStayOut(t *testing.T) {
	t.Parallel()
	_, text := run(t, start(t, "OPENAI_API_KEY=hush", "LANG=C", "PI_SECRET_TOKEN=hush"), "env")
	require.NotContains(t, text, "hush")
	require.Contains(t, text, "LANG=C")
}

func TestInterruptEndsTheGroup(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"asked":   "sleep 600",
		"deaf":    "trap '' TERM INT; echo ready; while :; do sleep 1; done",
		"a child": "(trap '' TERM; sleep 600)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := start(t)
			done := make(chan kernel.CellReply, 1)
			var p printed
			go func() {
				reply, err := i.Execute(context.Background(), kernel.CellRequest{Code: script}, p.emit)
				if err != nil {
					reply.Error = &messages.ErrorDetails{Message: err.Error()}
				}
				done <- reply
			}()
			require.Eventually(t, func() bool { return i.Info().PID != 0 && (name != "deaf" || p.text() != "") }, 3*time.Minute, time.Millisecond)
			require.NoError(t, i.Interrupt(t.Context()))
			require.NoError(t, i.Interrupt(t.Context()), "again")
			select {
			case reply := <-done:
				require.True(t, reply.Interrupted)
				require.False(t, reply.OK)
				require.Nil(t, reply.Error)
			case <-time.After(20 * time.Second):
				t.Fatal("it lives on")
			}
			require.NoError(t, i.Ping(t.Context()))
			_, text := run(t, i, "echo again")
			require.Equal(t, "again\n", text)
		})
	}
}

func TestTheEndOfTheContextKills(t *testing.T) {
	t.Parallel()
	i := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := i.Execute(ctx, kernel.CellRequest{Code: "trap '' TERM; sleep 600"}, new(printed).emit)
		done <- err
	}()
	require.Eventually(t, func() bool { return i.Info().PID != 0 }, 3*time.Minute, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
}

func TestOutputIsHeldBack(t *testing.T) {
	t.Parallel()
	i := start(t)
	taken := 0
	gate := make(chan struct{})
	once := sync.OnceFunc(func() { <-gate })
	done := make(chan kernel.CellReply, 1)
	go func() {
		reply, err := i.Execute(context.Background(), kernel.CellRequest{Code: "head -c 3000000 /dev/zero | tr '\\0' x"}, func(_ context.Context, e messages.Event) error {
			once()
			taken += len(e.(messages.Stream).Text)
			return nil
		})
		if err == nil {
			done <- reply
		}
	}()
	select {
	case <-done:
		t.Fatal("it ended although its output was not taken")
	case <-time.After(300 * time.Millisecond):
	}
	close(gate)
	require.True(t, (<-done).OK)
	require.Equal(t, 3_000_000, taken)
}

func TestWhatCannotStart(t *testing.T) {
	t.Parallel()
	key := messages.SessionKey{Session: "s", Cwd: t.TempDir()}
	_, err := bash.New(bash.Options{Env: []string{"PATH=" + t.TempDir() + string(filepath.ListSeparator) + "relative"}}).Start(t.Context(), kernel.StartOptions{Key: key})
	require.ErrorIs(t, err, bash.ErrNoShell)
	key.Cwd = filepath.Join(key.Cwd, "gone")
	_, err = bash.New(bash.Options{Env: os.Environ()}).Start(t.Context(), kernel.StartOptions{Key: key})
	require.ErrorContains(t, err, "is not a directory")
	reply, _ := run(t, start(t), "echo "+strings.Repeat("x", 200<<10))
	require.False(t, reply.OK)
	require.Contains(t, reply.Error.Message, "write it to a file")
}

func TestCloseEndsWhatRuns(t *testing.T) {
	t.Parallel()
	i := start(t)
	done := make(chan kernel.CellReply, 1)
	go func() {
		reply, err := i.Execute(context.Background(), kernel.CellRequest{Code: "sleep 600"}, new(printed).emit)
		if err == nil {
			done <- reply
		}
	}()
	require.Eventually(t, func() bool { return i.Info().PID != 0 }, 3*time.Minute, time.Millisecond)
	require.Positive(t, i.RSS())
	require.NoError(t, i.Close(t.Context()))
	require.Equal(t, 143, *(<-done).ExitCode)
	<-i.Done()
	require.Error(t, i.Ping(t.Context()))
	reply, err := i.Execute(t.Context(), kernel.CellRequest{Code: "echo late"}, new(printed).emit)
	require.NoError(t, err)
	require.Contains(t, fmt.Sprint(reply.Error), "closed")
}
