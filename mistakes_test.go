package coppice_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/notebook"
	"github.com/coppice-run/coppice/notebook/run"
	"github.com/coppice-run/coppice/test/testpython"
)

// TestMistakesAreErrors makes the mistakes of a program, before and after the end
// of its host: each is one clear error, and none a panic.
func TestMistakesAreErrors(t *testing.T) {
	var none context.Context
	ctx := t.Context()
	_, err := coppice.Start(none, coppice.Options{})
	require.ErrorContains(t, err, "the context is nil; pass context.Background()")
	_, err = coppice.Start(ctx, coppice.Options{MaxPerOwner: -1})
	require.EqualError(t, err, "invalid options: MaxPerOwner is negative; use 0 for the default")
	_, err = coppice.Start(ctx, coppice.Options{StartTimeout: -1})
	require.ErrorIs(t, err, coppice.ErrOptions)

	host, err := coppice.Start(ctx, coppice.Options{Backend: coppice.Runner(coppice.RunnerOptions{}), Python: testpython.Path(t), Home: t.TempDir()})
	require.NoError(t, err)
	s := host.Session("s")
	one := coppice.Request{Cells: []messages.Cell{{Code: "1"}}}
	stream := func(ctx context.Context) (events int, last error) {
		for e, err := range s.Stream(ctx, one) {
			if last = err; e != nil {
				events++
			}
		}
		return events, last
	}
	for name, tt := range map[string]struct {
		err   func() error
		field string
		text  string
	}{
		"no context": {func() error { _, err := s.Execute(none, one); return err }, "ctx", "the context is nil"},
		"no context for a stream": {func() error {
			events, err := stream(none)
			require.Zero(t, events)
			return err
		}, "ctx", "the context is nil"},
		"no context for a snapshot": {func() error { _, err := host.Snapshot(none); return err }, "ctx", "the context is nil"},
		"no notebook":               {func() error { _, err := s.RunNotebook(ctx, nil, run.Options{}); return err }, "notebook", "notebook.Open"},
		"no context for a notebook": {func() error {
			_, err := s.RunNotebook(none, notebook.New(), run.Options{})
			return err
		}, "ctx", "the context is nil"},
		"no checkpoint":       {func() error { return s.Rewind(ctx, nil) }, "checkpoint", "Session.Checkpoint"},
		"an empty checkpoint": {func() error { return s.Rewind(ctx, &coppice.Checkpoint{}) }, "checkpoint", "Session.Checkpoint"},
		"a variable with a zero": {func() error {
			_, err := s.Execute(ctx, coppice.Request{Cells: one.Cells, Env: map[string]string{"A": "\x00"}})
			return err
		}, "env", `"A" cannot be set`},
		"a variable with an equals sign": {func() error {
			_, err := s.Execute(ctx, coppice.Request{Cells: one.Cells, Env: map[string]string{"A=B": "c"}})
			return err
		}, "env", `"A=B" cannot be set`},
	} {
		t.Run(name, func(t *testing.T) {
			var wrong *coppice.RequestError
			err := tt.err()
			require.ErrorAs(t, err, &wrong)
			require.Equal(t, tt.field, wrong.Field)
			require.ErrorContains(t, err, tt.text)
		})
	}
	r, err := s.Execute(ctx, one)
	require.NoError(t, err)
	require.Equal(t, messages.OutcomeOK, r.Outcome, "none of it has cost the session anything")

	gone, cancel := context.WithCancel(ctx)
	cancel()
	late, cancel := context.WithDeadline(ctx, time.Now().Add(-time.Second))
	defer cancel()
	for _, tt := range []struct {
		ctx     context.Context
		err     error
		outcome messages.Outcome
		remedy  messages.Remedy
		text    string
	}{
		{gone, context.Canceled, messages.OutcomeCancelled, "", "Command aborted: it was not sent, and the code was not run."},
		{late, context.DeadlineExceeded, messages.OutcomeTimeout, messages.RemedyMoreTime, "Command timed out at the deadline of its caller: it was not sent, and the code was not run."},
	} {
		r, err := s.Execute(tt.ctx, one)
		require.ErrorIs(t, err, tt.err)
		require.Equal(t, tt.outcome, r.Outcome)
		require.Empty(t, r.Refusal, "nothing is wrong with the request")
		require.Equal(t, tt.remedy, r.Remedy)
		require.False(t, r.Ran())
		require.Contains(t, r.Text, tt.text)
		require.ErrorIs(t, r.Err(), tt.err)
	}

	require.True(t, host.Shutdown(none).Clean())
	require.True(t, host.Shutdown(ctx).Clean(), "a second end is the first one's")
	r, err = s.Execute(ctx, one)
	require.Equal(t, messages.OutcomeNotStarted, r.Outcome)
	require.Equal(t, coppice.ErrClosed, err, "one sentence, not all that is closed")
	events, err := stream(ctx)
	require.Zero(t, events)
	require.Equal(t, coppice.ErrClosed, err)
	require.ErrorIs(t, s.Close(ctx), coppice.ErrClosed)
}
