package process

import (
	"context"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAGroupOfItsOwn: a child leads a group, so that CTRL_BREAK reaches it and
// not the host; one that shares the host's group does not.
func TestAGroupOfItsOwn(t *testing.T) {
	require.EqualValues(t, syscall.CREATE_NEW_PROCESS_GROUP, sysProcAttr(Options{}).CreationFlags)
	require.EqualValues(t, syscall.CREATE_NEW_PROCESS_GROUP, sysProcAttr(Options{ShareGroup: true, OutliveHost: true}).CreationFlags)
	require.Zero(t, sysProcAttr(Options{ShareGroup: true}).CreationFlags)
	require.True(t, sysProcAttr(Options{}).HideWindow)
	require.False(t, terminateGroup(0), "group 0 is everybody at the console")
	require.False(t, LimitsMemory)
	require.False(t, DiesWithHost)
}

// TestStopEndsAChild, by the request or by force.
func TestStopEndsAChild(t *testing.T) {
	ping, err := exec.LookPath("ping")
	require.NoError(t, err)
	for _, grace := range []time.Duration{10 * time.Second, -1} {
		p, err := Start(Options{Path: ping, Args: []string{"-n", "600", "127.0.0.1"}})
		require.NoError(t, err)
		require.True(t, Alive(p.Identity()))
		require.NoError(t, p.Stop(context.Background(), StopOptions{Grace: grace}))
		require.False(t, Alive(p.Identity()))
		require.Error(t, p.Err())
	}
}
