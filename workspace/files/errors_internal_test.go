package files

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAFullDiskIsNoQuota: who has none could not make room by asking for a larger one.
func TestAFullDiskIsNoQuota(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]error{syscall.ENOSPC: ErrNoSpace, syscall.EDQUOT: ErrQuota} {
		got := fail("write", "a", &fs.PathError{Op: "write", Path: "/tmp/w/a", Err: err})
		require.ErrorIs(t, got, want)
		require.ErrorIs(t, got, err)
		for _, other := range []error{ErrNoSpace, ErrQuota} {
			require.Equal(t, other == want, errors.Is(got, other))
		}
	}
}
