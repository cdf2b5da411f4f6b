package handover

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestAdmit: another user's process is refused, and one that is gone has ended.
func TestAdmit(t *testing.T) {
	t.Parallel()
	me := os.Geteuid()
	id, err := admit(&unix.Ucred{Pid: int32(os.Getpid()), Uid: uint32(me)}, me)
	require.NoError(t, err)
	require.Equal(t, os.Getpid(), id.PID)
	_, err = admit(&unix.Ucred{Pid: int32(os.Getpid()), Uid: uint32(me) + 1}, me)
	require.ErrorContains(t, err, "the other process belongs to user")
	_, err = admit(&unix.Ucred{Pid: 1 << 30, Uid: uint32(me)}, me)
	require.ErrorIs(t, err, ErrEnded)
}
