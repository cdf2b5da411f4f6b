//go:build linux

package runner_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAStartThatIsOverEndsNoSession: when the start that takes a session over is cancelled, because
// its host leaves in that moment, the session goes on with the next host.
func TestAStartThatIsOverEndsNoSession(t *testing.T) {
	t.Parallel()
	i := session(t)
	ok(t, i, "x = 1")
	require.ErrorIs(t, i.SettleLate(t.Context()), context.Canceled)
	require.NoError(t, i.Err())
	require.Equal(t, "1\n", ok(t, i, "print(x)").text())
}

// TestWhatWasLeftIsNotCutOff: a host that cannot reach a session any more that it has left does not
// end it.
func TestWhatWasLeftIsNotCutOff(t *testing.T) {
	t.Parallel()
	i := session(t)
	ok(t, i, "x = 1")
	i.CutOff(true)
	require.Equal(t, "1\n", ok(t, i, "print(x)").text())
	i.CutOff(false)
	<-i.Done()
}
