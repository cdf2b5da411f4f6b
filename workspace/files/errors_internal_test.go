package files

import (
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAFullDiskIsNoQuota: who has none could not make room by asking for a larger one.
func TestAFullDiskIsNoQuota(t *testing.T) {
	t.Parallel()
	for err, tt := range map[error]struct{ want, other error }{
		syscall.ENOSPC: {ErrNoSpace, ErrQuota},
		syscall.EDQUOT: {ErrQuota, ErrNoSpace},
	} {
		got := fail("write", "a", &fs.PathError{Op: "write", Path: "/tmp/w/a", Err: err})
		require.ErrorIs(t, got, tt.want)
		require.ErrorIs(t, got, err)
		require.NotErrorIs(t, got, tt.other)
	}
}
