package toolproc_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/toolproc"
	"github.com/coppice-run/coppice/test/toolbox"
)

// TestAKeeperThatHasEnded is replaced by the next tool, and knows those from before.
// That none is left at the end, the check for goroutines shows.
func TestAKeeperThatHasEnded(t *testing.T) {
	t.Parallel()
	one, _ := options(t, toolbox.Tool{})
	first, err := toolproc.Start(t.Context(), one)
	require.NoError(t, err)
	was, tools := toolproc.Keeper()
	require.Positive(t, was)
	require.Positive(t, tools)
	require.NoError(t, syscall.Kill(was, syscall.SIGKILL))
	require.Eventually(t, func() bool { return syscall.Kill(was, 0) != nil }, time.Minute, 5*time.Millisecond)
	other, _ := options(t, toolbox.Tool{})
	second, err := toolproc.Start(t.Context(), other)
	require.NoError(t, err)
	is, tools := toolproc.Keeper()
	require.Positive(t, is)
	require.NotEqual(t, was, is)
	require.GreaterOrEqual(t, tools, 2)
	require.NoError(t, first.Stop(t.Context(), time.Second))
	require.NoError(t, second.Stop(t.Context(), time.Second))
}
