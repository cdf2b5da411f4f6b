package deadline_test

import (
	"context"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/internal/deadline"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestPast ends a wait with its context, and only that.
func TestPast(t *testing.T) {
	t.Parallel()
	one, other := net.Pipe()
	defer func() { require.NoError(t, one.Close()); require.NoError(t, other.Close()) }()
	ctx, cancel := context.WithCancel(t.Context())
	stop := deadline.Past(ctx, one.SetReadDeadline)
	time.AfterFunc(time.Millisecond, cancel)
	_, err := one.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.False(t, stop())
	require.False(t, stop(), "it may be called again")

	ctx, cancel = context.WithCancel(t.Context())
	stop = deadline.Past(ctx, func(time.Time) error { panic("it has ended") })
	require.True(t, stop())
	cancel()
}

// TestLate: a context that ends as the wait does is not noticed after it.
func TestLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		at := time.Time{}
		stop := deadline.Free(ctx, func(to time.Time) error {
			if !to.IsZero() {
				time.Sleep(time.Hour) // nobody has a processor for it
			}
			at = to
			return nil
		})
		cancel()
		stop()
		require.Zero(t, at)
		synctest.Wait()
		time.Sleep(2 * time.Hour)
		require.Zero(t, at)
		stop()
	})
}
