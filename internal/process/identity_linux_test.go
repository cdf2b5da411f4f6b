package process_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/process"
)

func TestIdentity(t *testing.T) {
	t.Parallel()
	self, err := process.Identify(os.Getpid())
	require.NoError(t, err)
	again, err := process.Identify(os.Getpid())
	require.NoError(t, err)
	require.Equal(t, self, again)
	require.True(t, process.Alive(self))

	_, err = process.Identify(1 << 30)
	require.ErrorIs(t, err, process.ErrNoProcess)

	for name, id := range map[string]process.Identity{
		"another start time": {PID: self.PID, Start: "1" + self.Start},
		"no start time":      {PID: self.PID},
		"another boot":       {PID: self.PID, Start: strings.Split(self.Start, "@")[0] + "@before"},
		"zero":               {},
		"a group":            {PID: -self.PID, Start: self.Start},
	} {
		require.False(t, process.Alive(id), name)
	}
}

func TestKillAllSparesARecycledPID(t *testing.T) {
	t.Parallel()
	p := start(t, child("wait"))
	stale := p.Identity()
	stale.Start = "1@" + stale.Start
	require.Empty(t, process.KillAll(t.Context(), []process.Identity{stale}))
	require.True(t, process.Alive(p.Identity()))
}

func TestDescendantsAndHolding(t *testing.T) {
	t.Parallel()
	o := child("escapee waits")
	o.Args = []string{"-test.run=^mark-" + t.Name() + "$"}
	o.Stdout = process.NewRing(process.RingOptions{})
	p := start(t, o)
	escapee := identity(t, object(t, o.Stdout))

	got, err := process.Descendants(p.Identity())
	require.NoError(t, err)
	require.Empty(t, cmp.Diff([]process.Identity{escapee}, got))
	self, err := process.Identify(os.Getpid())
	require.NoError(t, err)
	mine, err := process.Descendants(self)
	require.NoError(t, err)
	require.Contains(t, mine, p.Identity())
	require.Contains(t, mine, escapee, "grandchildren are descendants")

	held, err := process.Holding("mark-" + t.Name())
	require.NoError(t, err)
	require.Empty(t, cmp.Diff([]process.Identity{p.Identity()}, held))

	rss, err := process.RSS(escapee.PID)
	require.NoError(t, err)
	require.Greater(t, rss, int64(1<<20))

	require.NoError(t, p.Stop(t.Context(), process.StopOptions{Grace: -1}))
	require.True(t, process.Alive(escapee), "another session is out of the group's reach")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.Empty(t, process.KillAll(ctx, got))
	_, err = process.RSS(p.PID())
	require.ErrorIs(t, err, process.ErrNoProcess)
	_, err = process.Descendants(p.Identity())
	require.ErrorIs(t, err, process.ErrNoProcess)
}

func TestKillAllReportsWhatItCannotEnd(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := start(t, child("wait"))
	// The zombie of a child that was killed is reaped by its own goroutine, so
	// that the only outcomes are gone and, for an instant, still there.
	for _, id := range process.KillAll(ctx, []process.Identity{p.Identity()}) {
		require.Equal(t, p.Identity(), id)
	}
	ended(t, p)
}
