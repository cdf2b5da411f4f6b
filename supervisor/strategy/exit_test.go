package strategy_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

func TestExit(t *testing.T) {
	t.Parallel()
	rows := []struct {
		exit    strategy.Exit
		text    string
		value   messages.Exit
		failure bool
	}{
		{strategy.Exit{Kind: messages.ExitNormal}, "normal", messages.Exit{Kind: messages.ExitNormal}, false},
		{strategy.Exit{}, "", messages.Exit{}, false},
		{strategy.Exit{Kind: messages.ExitReset}, "reset", messages.Exit{Kind: messages.ExitReset}, false},
		{strategy.Exit{Kind: messages.ExitShutdown, Err: errTest, Msg: "int"}, "shutdown: on purpose", messages.Exit{Kind: messages.ExitShutdown, Reason: "on purpose"}, false},
		{strategy.Exit{Kind: messages.ExitFailed, Err: errTest, Msg: "int"}, "failed: on purpose", messages.Exit{Kind: messages.ExitFailed, Reason: "on purpose"}, true},
		{strategy.Exit{Kind: messages.ExitPanicked, Panic: "oh", Msg: "int", Stack: []byte("secret")}, "panicked: oh (in int)", messages.Exit{Kind: messages.ExitPanicked, Reason: "oh (in int)"}, true},
		{strategy.Exit{Kind: messages.ExitKilled, Msg: "int"}, "killed: in int", messages.Exit{Kind: messages.ExitKilled, Reason: "in int"}, true},
		{strategy.Exit{Kind: messages.ExitOverloaded}, "overloaded", messages.Exit{Kind: messages.ExitOverloaded}, true},
	}
	for _, row := range rows {
		require.EqualError(t, row.exit, row.text)
		require.Equal(t, row.value, row.exit.Value())
		require.Equal(t, row.failure, row.exit.Failure())
	}
	require.ErrorIs(t, strategy.Exit{Panic: errTest}, errTest)
	require.NotErrorIs(t, strategy.Exit{Panic: "text"}, errTest)

	exit := strategy.Exitf(messages.ExitHung, "silent: %w", errTest)
	require.EqualError(t, exit, "hung: silent: on purpose")
	require.ErrorIs(t, exit, errTest)
}

func TestVerb(t *testing.T) {
	t.Parallel()
	require.Equal(t, "none", strategy.Verb(0).String())
	var names []string
	for v := strategy.VerbResume; v <= strategy.VerbEscalate; v++ {
		names = append(names, v.String())
	}
	require.Equal(t, []string{"resume", "wait", "hibernate", "restart", "stop", "abandon", "escalate"}, names)
}

func TestSubject(t *testing.T) {
	t.Parallel()
	for _, e := range []strategy.Event{
		strategy.Spawning{Key: "a"}, strategy.Up{Key: "a"}, strategy.Fail{Key: "a"}, strategy.Gone{Key: "a"},
	} {
		require.Equal(t, "a", e.Subject(), "%T", e)
	}
	require.Empty(t, strategy.Tick{}.Subject())
}
