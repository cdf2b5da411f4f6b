package gateway

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOwnersOfAKernelThatEnds: whose calls it has served is over with it, and who has called and
// waits for the next one is still known.
func TestOwnersOfAKernelThatEnds(t *testing.T) {
	t.Parallel()
	o := owners{}
	o.ended("never used", true)
	require.Empty(t, o)
	for _, waits := range []bool{true, false} {
		o.add("a", "caller")
		o.of("a").served.Add("caller", "served")
		o.ended("a", waits)
		require.Empty(t, o.release("served"))
		if waits {
			require.Equal(t, []string{"a"}, o.release("caller"))
		} else {
			require.Empty(t, o.release("caller"))
		}
		o.forget("a")
	}
}
