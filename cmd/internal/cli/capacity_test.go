package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/kernel"
)

// sized is a backend of which the machine bears so many sessions.
type sized struct {
	coppice.Backend
	bears int
}

// Sessions implements [kernel.Sizer].
func (s sized) Sessions(kernel.Site) int { return s.bears }

// TestCapacity: a server that was told nothing holds no fewer than 64 sessions, whichever backend it
// has, and else what its host makes of the memory.
func TestCapacity(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		most, runner, gateway, want int
	}{
		"told":            {7, 500, 150, 7},
		"plenty":          {0, 500, 150, 0},
		"enough":          {0, 64, 64, 0},
		"few kernels":     {0, 500, 63, 64},
		"little":          {0, 8, 4, 64},
		"more than there": {200, 8, 4, 200},
	} {
		require.Equal(t, tc.want, capacityOf(tc.most, []coppice.Backend{sized{bears: tc.runner}, sized{bears: tc.gateway}}), name)
	}
	for _, backend := range []string{"", "auto", "runner", "gateway"} {
		require.Contains(t, []int{0, leastSessions}, capacity(0, backend))
		require.Equal(t, 3, capacity(3, backend))
	}
	require.Equal(t, 16*leastSessions, maxWaiting(0))
	require.Equal(t, 32, maxWaiting(2))
}
