package toolproc_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/toolproc"
)

// TestEndsThatTheSystemCounts, in the words of either version of control groups.
func TestEndsThatTheSystemCounts(t *testing.T) {
	t.Parallel()
	for name, text := range map[string][2]string{
		"memory.events":      {"low 0\noom 1\noom_kill 1\noom_group_kill 0\n", "low 0\noom 3\noom_kill 2\noom_group_kill 0\n"},
		"memory.oom_control": {"oom_kill_disable 0\nunder_oom 0\noom_kill 0\n", "oom_kill_disable 0\nunder_oom 1\noom_kill 1\n"},
	} {
		file := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(file, []byte(text[0]), 0o600))
		raised := toolproc.CountIn(file)
		require.False(t, raised(), name)
		require.NoError(t, os.WriteFile(file, []byte(text[1]), 0o600))
		require.True(t, raised(), name)
		require.NoError(t, os.Remove(file))
		require.False(t, raised(), name)
	}
	require.False(t, toolproc.CountIn(filepath.Join(t.TempDir(), "none"))())
	require.Positive(t, toolproc.MostMapped(os.Getpid()))
	require.Zero(t, toolproc.MostMapped(-1))
}
