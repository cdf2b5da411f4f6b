package process_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/process"
)

// headless starts a process that goes on without its first thread: the system shows it as
// a zombie. It returns what it has started, too.
func headless(t *testing.T, own *process.Owner) (*process.Process, process.Identity) {
	t.Helper()
	o := child("headless")
	o.Owner, o.Stdout = own, process.NewRing(process.RingOptions{})
	p := start(t, o)
	below := identity(t, object(t, o.Stdout))
	require.Eventually(t, func() bool {
		threads, err := process.Threads(p.Identity())
		return err == nil && len(threads) > 1 && threads[0].State == process.Over
	}, patience, time.Millisecond)
	return p, below
}

// TestAProcessOutlivesItsFirstThread and is known, found, awaited and ended as any other.
func TestAProcessOutlivesItsFirstThread(t *testing.T) {
	t.Parallel()
	p, below := headless(t, nil)
	id, err := process.Identify(p.PID())
	require.NoError(t, err)
	require.Equal(t, p.Identity(), id)
	require.True(t, process.Alive(id))
	_, err = process.Look(id.PID)
	require.NoError(t, err)
	found, err := process.Descendants(id)
	require.NoError(t, err)
	require.Contains(t, found, below)
	all, err := process.Tally(0, []int{id.PID})
	require.NoError(t, err)
	for _, m := range all {
		require.Positive(t, m.Memory, "of %v", m.Identity)
	}
	require.Len(t, all, 2)
	few, err := process.TallyOf([]int{id.PID, below.PID})
	require.NoError(t, err)
	require.Len(t, few, 2)
	rss, err := process.RSS(id.PID)
	require.NoError(t, err)
	require.Positive(t, rss)
	c, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, process.Await(c, id), context.Canceled, "it has not ended")
	require.Empty(t, process.KillAll(t.Context(), []process.Identity{id}))
	ended(t, p)
	require.False(t, process.Alive(id))
}

// TestAnOwnerEndsWhatHasNoFirstThread, and what that has started.
func TestAnOwnerEndsWhatHasNoFirstThread(t *testing.T) {
	t.Parallel()
	own := owner(t)
	p, below := headless(t, own)
	require.NoError(t, own.Close(t.Context()))
	require.False(t, process.Alive(p.Identity()))
	require.False(t, process.Alive(below))
	ended(t, p)
}
