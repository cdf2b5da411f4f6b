package coppice_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/sinks"
	"github.com/coppice-run/coppice/sinks/audit"
)

// TestAFailedStartLeavesNothingOpen fails at the last option that Start looks at: the
// trace and the audit log are open then.
func TestAFailedStartLeavesNothingOpen(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	twice := sinks.Attachment{Name: "twice"}
	_, err := coppice.Start(t.Context(), coppice.Options{
		Home: home, Env: []string{}, Backend: coppice.Runner(coppice.RunnerOptions{}), TraceIPC: true,
		Audit: &audit.Options{Path: filepath.Join(home, "audit.jsonl")}, Sinks: []sinks.Attachment{twice},
	})
	require.ErrorContains(t, err, "make the sinks")
	open, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, fd := range open {
		target, err := os.Readlink(filepath.Join("/proc/self/fd", fd.Name()))
		require.False(t, err == nil && strings.HasPrefix(target, home), "%s is still open", target)
	}
}
