package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/liveview/vitals"
	"github.com/coppice-run/coppice/cmd/internal/version"
	"github.com/coppice-run/coppice/workspace"
)

// TestWhatTheFlagsOfServersBound: a flag that no host hears of bounds nothing.
func TestWhatTheFlagsOfServersBound(t *testing.T) {
	places := workspace.SetOptions{Max: 3, MaxPerOwner: 2}
	o := serveFlags{sessions: 4, places: places}.hostOptions(newMetrics(version.Read()), vitals.New())
	require.Equal(t, places, o.Workspaces)
	require.Equal(t, time.Hour, o.IdleTTL)
	require.Equal(t, 4, o.MaxSessions)
	m := mcpFlags{sessions: 5, idle: time.Minute}.hostOptions(true)
	require.Equal(t, time.Minute, m.IdleTTL)
	require.Equal(t, 5, m.MaxSessions)
	require.True(t, m.Bash)
}
