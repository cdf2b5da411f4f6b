package workspace_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/workspace"
)

// TestAFullFolderStopsOnlyWhatFillsIt: what begins in a folder that holds more than it may goes
// on, whoever has filled it since it was looked at last, until the folder grows further.
func TestAFullFolderStopsOnlyWhatFillsIt(t *testing.T) {
	const quota = 1 << 20
	w := startWith(t, owner(t), workspace.SetOptions{})
	defer w.stop(t)
	one := w.open(t, "w", workspace.Options{Quota: quota})
	fill := func(name string, bytes int) {
		require.NoError(t, os.WriteFile(filepath.Join(one.Folder(), name), make([]byte, bytes), 0o600))
	}
	looks := func(n uint64) {
		t.Helper()
		from := one.Measured()
		require.Eventually(t, func() bool { return one.Measured() >= from+n }, time.Minute, time.Millisecond)
	}
	leave, err := one.Enter()
	require.NoError(t, err)
	looks(1) // a call has found the folder empty
	leave()
	fill("big", quota)
	fill("small", 1)
	innocent, err := one.Start(t.Context(), script("sleep 600"))
	require.NoError(t, err)
	looks(3)
	_, ended := innocent.Exit()
	require.False(t, ended, "it has written nothing")
	require.Zero(t, one.Info().Usage.Ends)

	fill("more", 1)
	exit, err := innocent.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, "ResourceLimitExceeded: disk: the workspace w had 1048578 bytes of files together, and may have 1048576 bytes: what ran was stopped; remove some", exit.Reason)

	met := one.Met(1, time.Now(), &messages.ErrorDetails{Name: "OSError", Message: "[Errno 27] File too large"})
	require.Equal(t, "disk: the workspace w may have 1 MiB of files together, and a file would have become longer than that: it was not written further", string(met.Limit)+": "+met.Detail)
}

// TestAShortCellThatFillsAFolderIsTold: it is over before anybody looks, and is told at its end, it
// alone.
func TestAShortCellThatFillsAFolderIsTold(t *testing.T) {
	w := startWith(t, owner(t), workspace.SetOptions{})
	defer w.stop(t)
	one := w.open(t, "w", workspace.Options{Quota: 1 << 20})
	cell := func(bytes int) *messages.ResourceLimitExceeded {
		t.Helper()
		begin := time.Now()
		for bytes > 0 {
			require.NoError(t, os.WriteFile(filepath.Join(one.Folder(), messages.NewID()), make([]byte, min(bytes, 900_000)), 0o600))
			bytes -= 900_000
		}
		one.Unpaused()
		return one.Met(1, begin, nil)
	}
	require.Nil(t, cell(1000))
	met := cell(3 << 20)
	require.NotNil(t, met)
	require.Equal(t, messages.LimitDisk, met.Limit)
	require.Equal(t, "the workspace w had 3 MiB of files together, and may have 1 MiB: remove some", met.Detail)
	require.Nil(t, cell(0), "it has written nothing")
	require.NotNil(t, cell(1))
	require.Equal(t, 2, one.Info().Usage.Ends)
}
