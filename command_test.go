//go:build !windows

package coppice_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks"
)

// commandHost starts a host without Python that runs commands.
func commandHost(t *testing.T, o coppice.Options) *coppice.Host {
	t.Helper()
	o.Home, o.Backend, o.Bash = t.TempDir(), coppice.Runner(coppice.RunnerOptions{}), true
	o.Env = []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "OPENAI_API_KEY=hidden"}
	host, err := coppice.Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.True(t, host.Shutdown(ctx).Clean())
	})
	return host
}

// until is a command that ends when a file is there.
func until(file string) string { return "until [ -e '" + file + "' ]; do sleep .01; done" }

// A command is a call like any other: its result, its events and what sinks hear of it.
func TestCommand(t *testing.T) {
	t.Parallel()
	var heard []messages.Execute
	host := commandHost(t, coppice.Options{Sinks: []sinks.Attachment{{Name: "heard", For: func(_ context.Context, e messages.Execute) sinks.Sink {
		heard = append(heard, e)
		return nil
	}}}})
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	streamed := ""
	r, err := host.Command(t.Context(), coppice.Command{
		Script: "pwd\necho $GREETING $OPENAI_API_KEY >&2; exit 7", Cwd: dir, Env: map[string]string{"GREETING": "hello"},
		Session: "chat 7", Owner: "one", ID: "call-1", OnEvent: func(e messages.Event) {
			if s, ok := e.(messages.Stream); ok {
				streamed += s.Text
			}
		},
	})
	require.NoError(t, err)
	require.Equal(t, dir+"\nhello\n", streamed)
	require.Equal(t, dir+"\nhello\n\nCommand exited with code 7", r.Text)
	require.Equal(t, messages.OutcomeError, r.Outcome)
	require.Equal(t, 7, *r.Cells[0].ExitCode)
	require.Equal(t, [3]string{"bash", "chat 7", dir}, [3]string{r.Backend, r.Session, r.Cwd})
	require.Len(t, heard, 1)
	require.Equal(t, [3]string{"call-1", "one", "chat 7"}, [3]string{heard[0].ID, heard[0].Owner, heard[0].Key.Session})

	r, err = host.Command(t.Context(), coppice.Command{Script: "sleep 600", Timeout: 50 * time.Millisecond})
	require.NoError(t, err)
	require.Equal(t, messages.OutcomeTimeout, r.Outcome)
	require.Len(t, heard[1].ID, len(messages.NewID()))

	ctx, cancel := context.WithCancel(t.Context())
	r, err = host.Command(ctx, coppice.Command{Script: "echo begun; sleep 600", OnEvent: func(e messages.Event) {
		if _, ok := e.(messages.Stream); ok {
			cancel()
		}
	}})
	require.NoError(t, err)
	require.Equal(t, messages.OutcomeCancelled, r.Outcome)
	_, err = host.Command(ctx, coppice.Command{Script: "true"})
	require.ErrorIs(t, err, context.Canceled)
}

// What cannot be run is refused with the field that is wrong, and nothing is run.
func TestCommandsThatAreRefused(t *testing.T) {
	t.Parallel()
	host := commandHost(t, coppice.Options{})
	for field, c := range map[string]coppice.Command{
		"command":  {Script: " \n"},
		"command ": {Script: "a\x00b"},
		"command_": {Script: "echo \xff"},
		"cwd":      {Script: "true", Cwd: filepath.Join(t.TempDir(), "none")},
		"timeout":  {Script: "true", Timeout: -time.Minute},
		"env":      {Script: "true", Env: map[string]string{"A=B": "1"}},
		"id":       {Script: "true", ID: "a\nb"},
		"id ":      {Script: "true", ID: strings.Repeat("x", 129)},
	} {
		r, err := host.Command(t.Context(), c)
		var bad *coppice.RequestError
		require.ErrorAs(t, err, &bad, field)
		require.Equal(t, strings.Trim(field, " _"), bad.Field)
		require.Equal(t, messages.OutcomeNotStarted, r.Outcome)
		c.OnEvent = func(messages.Event) { t.Error("nothing happened") }
		_, err = host.Command(t.Context(), c)
		require.ErrorAs(t, err, &bad, field)
	}
	_, err := host.Command(nil, coppice.Command{Script: "true"}) //nolint:staticcheck // that is what is tested
	var bad *coppice.RequestError
	require.ErrorAs(t, err, &bad)
	require.Equal(t, "ctx", bad.Field)

	without, err := coppice.Start(t.Context(), coppice.Options{Home: t.TempDir(), Backend: coppice.Runner(coppice.RunnerOptions{}), Env: []string{}})
	require.NoError(t, err)
	defer without.Shutdown(context.Background())
	_, err = without.Command(t.Context(), coppice.Command{Script: "true"})
	require.ErrorAs(t, err, &bad)
	require.EqualError(t, bad, "this host runs no commands; set Options.Bash")
}

// An id names one running command; when that has ended it may be given again.
func TestTheIDOfACommand(t *testing.T) {
	t.Parallel()
	host := commandHost(t, coppice.Options{})
	file, refused := filepath.Join(t.TempDir(), "go"), 0
	r, err := host.Command(t.Context(), coppice.Command{Script: "echo begun; " + until(file), ID: "mine", OnEvent: func(e messages.Event) {
		if _, ok := e.(messages.Stream); !ok || refused > 0 {
			return
		}
		_, err := host.Command(t.Context(), coppice.Command{Script: "true", ID: "mine"})
		var bad *coppice.RequestError
		require.ErrorAs(t, err, &bad)
		require.Equal(t, "id", bad.Field)
		refused++
		require.NoError(t, os.WriteFile(file, nil, 0o600))
	}})
	require.NoError(t, err)
	require.Equal(t, 1, refused)
	require.Equal(t, messages.OutcomeOK, r.Outcome)
	r, err = host.Command(t.Context(), coppice.Command{Script: "true", ID: "mine"})
	require.NoError(t, err)
	require.Equal(t, messages.OutcomeOK, r.Outcome)
}

// Drain waits for commands as it does for sessions, and takes no more of them.
func TestDrainOfCommands(t *testing.T) {
	t.Parallel()
	host := commandHost(t, coppice.Options{})
	file := filepath.Join(t.TempDir(), "go")
	drained, begun := make(chan error, 1), false
	r, err := host.Command(t.Context(), coppice.Command{Script: "echo begun; " + until(file) + "; echo ended", OnEvent: func(e messages.Event) {
		if _, ok := e.(messages.Stream); !ok || begun {
			return
		}
		begun = true
		go func() { drained <- host.Drain(context.Background()) }()
		require.Eventually(t, func() bool {
			_, err := host.Command(t.Context(), coppice.Command{Script: "true"})
			return err != nil
		}, time.Minute, time.Millisecond)
		require.Empty(t, drained, "a command runs")
		require.NoError(t, os.WriteFile(file, nil, 0o600))
	}})
	require.NoError(t, err)
	require.Equal(t, "begun\nended", r.Text)
	require.NoError(t, <-drained)
	var refused *messages.NotStartedError
	_, err = host.Command(t.Context(), coppice.Command{Script: "true"})
	require.ErrorAs(t, err, &refused)
	require.NoError(t, host.Drain(t.Context()), "it is drained already")
}
