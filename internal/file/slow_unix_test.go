//go:build unix

package file_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/file"
)

// TestSlow: a read that waits for the other end ends with its context too. Such
// a file is never opened by its path, but standard input may be one.
func TestSlow(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	f, err := os.OpenFile(path, os.O_RDWR|file.NonBlock, 0)
	require.NoError(t, err)
	defer f.Close()
	_, err = f.WriteString("half a line")
	require.NoError(t, err)
	why := errors.New("the client has left")
	ctx, cancel := context.WithCancelCause(t.Context())
	timer := time.AfterFunc(50*time.Millisecond, func() { cancel(why) })
	defer timer.Stop()
	_, err = file.ReadAll(ctx, f, 1<<20)
	require.ErrorIs(t, err, why)

	// What gives without an end is bounded.
	zero, err := os.Open("/dev/zero")
	require.NoError(t, err)
	defer zero.Close()
	_, err = file.ReadAll(t.Context(), zero, 3<<20)
	require.True(t, file.IsTooLarge(err), err)
	require.ErrorContains(t, err, "holds more than 3 MiB, and no more are read")
}
